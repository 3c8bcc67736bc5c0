#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What sampling heap profilers cost at one sample in 512 KiB: processor time and peak memory.

    profiler_costs.py measure FILE HAKMEM_FOLDER [--tcmalloc LIBRARY] [--seconds N] [CASE ...]
    profiler_costs.py table FILE ...

The cases are those of tools/hakbench/cases.txt. Each runs in turns without and with the profiler,
and with hakmem once more without it, which says how much of a difference is noise; FILE gets a line
a run. With --tcmalloc jemalloc (Debian's libjemalloc.so.2) and gperftools' library run, too. The
table compares medians of the turns' ratios; memory is the peak of the process with its children."""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from hakbench import launcher, plan  # pylint: disable=wrong-import-position

ROOT = pathlib.Path(__file__).resolve().parents[1]


def arms_of(options):
    """{name: variables}."""
    hakmem = {"LD_PRELOAD": str(options.hakmem.resolve() / "libhakmem.so")}
    arms = {"hakmem off": hakmem, "hakmem on": hakmem | {"HAKMEM_HEAP_PROFILE": "on"},
            "hakmem off again": hakmem, "hakmem black box": hakmem | {"HAKMEM_BLACKBOX": "on"}}
    if options.tcmalloc:
        jemalloc = {"LD_PRELOAD": "libjemalloc.so.2"}
        tcmalloc = {"LD_PRELOAD": options.tcmalloc}
        arms |= {"jemalloc off": jemalloc,
                 "jemalloc on": jemalloc | {"MALLOC_CONF": "prof:true,lg_prof_sample:19"},
                 "tcmalloc off": tcmalloc,
                 "tcmalloc on": tcmalloc | {"TCMALLOC_SAMPLE_PARAMETER": "524288"}}
    return arms


def run(words, variables):
    """Seconds of processors, and KiB at the peak."""
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, cwd=ROOT,
                          env=launcher.clean_environment() | variables) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{words} with {variables}: {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss


def measure(options):
    """Turns through all cases and arms until the time is up."""
    cases = [case for case in plan.read_table() if case.name in options.cases or not options.cases]
    arms = list(arms_of(options).items())
    end = time.monotonic() + options.seconds
    with open(options.file, "a", encoding="utf-8") as to:
        turn = 0
        while time.monotonic() < end:
            for case in cases:
                for arm in range(len(arms)):
                    name, variables = arms[(arm + turn) % len(arms)]
                    seconds, peak = run(case.words(), variables)
                    print(json.dumps([case.name, turn, name, seconds, peak]), file=to, flush=True)
                if time.monotonic() > end:
                    break
            turn += 1


def read(paths):
    """{case: {arm: [(seconds, peak) of each turn]}}, of whole turns only."""
    runs = {}
    for number, path in enumerate(paths):
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            case, turn, arm, seconds, peak = json.loads(line)
            runs.setdefault(case, {}).setdefault(arm, {})[number, turn] = (seconds, peak)
    return runs


def compare(arms, left, right):
    """Medians of the turns' ratios of time and differences of peaks in MiB; None: no turns."""
    turns = arms.get(left, {}).keys() & arms.get(right, {}).keys()
    if not turns:
        return None
    return (statistics.median(arms[right][turn][0] / max(arms[left][turn][0], 1e-3)
                              for turn in turns),
            statistics.median((arms[right][turn][1] - arms[left][turn][1]) / 1024
                              for turn in turns), len(turns))


def table(paths):
    """A row a case, and the geometric means."""
    pairs = [("hakmem off", "hakmem on"), ("hakmem off", "hakmem black box"),
             ("hakmem off", "hakmem off again"),
             ("jemalloc off", "jemalloc on"), ("tcmalloc off", "tcmalloc on")]
    runs = read(paths)
    ratios = {pair: [] for pair in pairs}
    print("| case | " + " | ".join(right for _, right in pairs) + " |")
    print("| --- |" + " --- |" * len(pairs))
    for case, arms in runs.items():
        cells = []
        for pair in pairs:
            found = compare(arms, *pair)
            if found:
                ratios[pair].append(found[0])
            cells.append(f"{found[0]:.3f}, {found[1]:+.1f} MiB ({found[2]})" if found else "")
        print(f"| {case} | " + " | ".join(cells) + " |")
    print("| mean | " + " | ".join(
        f"{math.exp(statistics.mean(map(math.log, found))):.4f}" if found else ""
        for found in ratios.values()) + " |")


def main():
    """Measures, or shows what was measured."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("file")
    measuring.add_argument("hakmem", type=pathlib.Path)
    measuring.add_argument("cases", nargs="*")
    measuring.add_argument("--tcmalloc")
    measuring.add_argument("--seconds", type=float, default=100)
    commands.add_parser("table").add_argument("files", nargs="+")
    options = parser.parse_args()
    if options.command == "measure":
        measure(options)
    else:
        table(options.files)


if __name__ == "__main__":
    main()
