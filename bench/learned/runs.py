#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a program gains by what it learned: runs it without learning, learning from nothing, and
with the file that a run with another seed left, in turn, and prints the medians.

    runs.py [--rounds N] PROGRAM [ARGUMENT]...

The word SEED among the arguments becomes a number, another one for the run that is learned from.
"static" stands there twice: the difference of its two rows is noise. "cost s" is the processor time
and the memory, by the option price (HAKMEM_PRICE) that all runs have; "to static" is the mean of
its ratios to the two static runs of the same round, with its standard error. Each round begins with
another run."""
import argparse
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "out/release/libhakmem.so"
VARIANTS = {
    "static": {"HAKMEM_LEARN": "none"},
    "static again": {"HAKMEM_LEARN": "none"},
    "learning": {"HAKMEM_MODE": "learning"},
    "learned": {"HAKMEM_MODE": "learning"},
}
COLUMNS = ("time s", "CPU s", "page faults", "in the first second", "mean RSS MiB", "peak RSS MiB",
           "cost s", "to static")
# So many MiB held for a second cost as much as a second of a processor.
CORE_SECOND_MIB = {"speed": 40960, "even": 4096, "compact": 409.6}
PAGE_MIB = os.sysconf("SC_PAGESIZE") / 2**20


def resident_mib(pid):
    """Of a process; None: it has ended."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MIB
    except (OSError, IndexError):
        return None


def faults_so_far(pid):
    """Minor page faults of a process; None: it has ended."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[7])
    except (OSError, IndexError):
        return None


def run(command, seed, settings, profile):
    """One run; its numbers, as COLUMNS has them."""
    environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), **settings}
    if profile is not None:
        environment["HAKMEM_PROFILE"] = str(profile)
    words = [str(seed) if word == "SEED" else word for word in command]
    start = time.monotonic()
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
    seen = []
    first_faults = None
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            break
        if first_faults is None and time.monotonic() - start >= 1:
            first_faults = faults_so_far(process.pid)
        mib = resident_mib(process.pid)
        if mib:
            seen.append(mib)
        time.sleep(0.01)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]} ended with {process.returncode}")
    wall_s, busy_s = time.monotonic() - start, usage.ru_utime + usage.ru_stime
    mean_mib = statistics.fmean(seen or [0])
    price = CORE_SECOND_MIB[os.environ.get("HAKMEM_PRICE", "even")]
    return (wall_s, busy_s, usage.ru_minflt,
            usage.ru_minflt if first_faults is None else first_faults,
            mean_mib, usage.ru_maxrss / 1024, busy_s + mean_mib * wall_s / price)


def to_static(rows, pairs):
    """The costs of some runs relative to the two static runs beside each, with the error."""
    ratios = [2 * row[-1] / (one[-1] + other[-1]) for row, (one, other) in zip(rows, pairs)]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else math.nan
    return f"{statistics.geometric_mean(ratios):.3f} ± {error:.3f}"


def main():
    """Runs all, interleaved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    if not asked.command:
        parser.error("a program is needed")
    work = pathlib.Path(tempfile.mkdtemp(prefix="learned."))
    first = work / "first"
    run(asked.command, 7, VARIANTS["learning"], first)
    results = {name: [] for name in VARIANTS}
    for number in range(asked.rounds):
        names = list(VARIANTS)
        at = number % len(names)
        for name in names[at:] + names[:at]:
            profile = None
            if name.startswith("learn"):
                profile = work / f"{name}{number}"
                if name == "learned":
                    shutil.copy(first, profile)
            results[name].append(run(asked.command, 42 + number, VARIANTS[name], profile))
    print("| " + " | ".join(("run", *COLUMNS)) + " |")
    print("| --- " + "| ---: " * len(COLUMNS) + "|")
    pairs = list(zip(results["static"], results["static again"]))
    for name, rows in results.items():
        medians = [statistics.median(column) for column in zip(*rows)]
        print(f"| {name} | {medians[0]:.2f} | {medians[1]:.2f} | {medians[2]:,.0f} | "
              f"{medians[3]:,.0f} | {medians[4]:.1f} | {medians[5]:.1f} | {medians[6]:.3f} | "
              f"{to_static(rows, pairs)} |",
              flush=True)
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
