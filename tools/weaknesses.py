#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the part of docs/ATTACKS.md about kinds of misuse by their CWE number.

    weaknesses.py [OUT]

Runs each case of tests/attack/matrix/weakness.cpp, built here, under libhakmem.so of the build
folder OUT (out/release) in its default, hardened and fence mode, and on the system's malloc.
"""
import collections
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/ATTACKS.md"
SIZES = (10, 100, 800, 262144)
LIMIT_S = 600
KINDS = {415: "double free", 416: "use after free", 122: "heap overflow, written",
         124: "underflow, written", 126: "over-read", 127: "under-read",
         590: "free of memory that is not on the heap",
         761: "free of a pointer that is not the block's start",
         762: "free by a function of another kind"}
STOPPED, IN_VAIN, MISSED = "stopped", "in vain", "missed"
MODES = {"hakmem": {}, "hakmem hardened": {"HAKMEM_MODE": "hardened"},
         "fence": {"HAKMEM_MODE": "fence"},
         "fence, start": {"HAKMEM_MODE": "fence", "HAKMEM_FENCE_SIDE": "start"}}
EITHER = "hakmem fence, either end"
MARK = "\n## By kind of weakness\n"
TEXT = MARK + """
Written by `tools/weaknesses.py`: {rows} misuses in the spirit of NIST's Juliet suite, each in
{flows} flows (direct, through a function, through a structure, in a loop, in an array of pointers,
by a global, in a thread, from a thread that ended) and with blocks of 10, 100, 800 and 262,144
bytes (`tests/attack/matrix/weakness_rows.cpp`). They access blocks by index, in a loop, by
functions for memory, strings and wide characters, through members of structures, by system calls,
and after `realloc`. A cell is the percentage of cases in which the allocator or a fault ended the
process, at the misuse or within 8000 allocations after it; in brackets the percentage that
continued, but read nothing that any block held, or whose system call the kernel refused at a guard
page. Overruns of a member into the next one of the same block are not included: no allocator can
detect them. "Either end" is what fence mode stops with `fence_side=end`, its default, or with
`start`: only the latter catches reads before a block. It misses reads within the alignment padding
behind a block, and accesses that skip the guard page.

"""


def build(folder):
    """The program of the cases."""
    program = str(pathlib.Path(folder) / "weakness")
    subprocess.run(["c++", "-std=c++17", "-O1", "-w", "-fno-builtin", "-pthread", "-o", program,
                    *map(str, (ROOT / "tests/attack/matrix").glob("weakness*.cpp"))], check=True)
    return program


def run(program, words, variables):
    """The process of one case, or of the cases without their misuse, and what it said."""
    environment = {"PATH": os.environ["PATH"], **variables}
    return subprocess.run([program, *words], env=environment, text=True, capture_output=True,
                          timeout=LIMIT_S, check=False)


def outcomes(program, variables, sizes=SIZES):
    """Of each case (CWE, row, flow, bytes): one of the three."""
    lines = run(program, [], {}).stdout.splitlines()
    cases = [(*line.split(), str(size)) for line in lines for size in sizes]

    def outcome(case):
        status = run(program, case, variables).returncode
        if status not in (0, 1, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS):
            raise ValueError(f"{case} under {variables}: exit status {status}")
        return {0: MISSED, 1: IN_VAIN}.get(status, STOPPED)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(cases, pool.map(outcome, cases)))


def either(one, another):
    """What is stopped in one of two runs of the cases is stopped."""
    return {case: STOPPED if STOPPED in (one[case], another[case]) else one[case] for case in one}


def shares(found):
    """By CWE, and under None of all: how many cases, and the percentages of the outcomes."""
    counts = collections.defaultdict(collections.Counter)
    for case, outcome in found.items():
        counts[int(case[0])][outcome] += 1
        counts[None][outcome] += 1
    return {kind: (sum(count.values()),
                   {outcome: 100 * number / sum(count.values())
                    for outcome, number in count.items()})
            for kind, count in counts.items()}


def cell(share):
    """The share that was stopped, and that which was in vain."""
    in_vain = share.get(IN_VAIN, 0)
    return f"{share.get(STOPPED, 0):.0f} %" + (f" ({in_vain:.0f} %)" if in_vain else "")


def part(found):
    """The text for the outcomes of each allocator."""
    columns = {name: shares(one) for name, one in found.items()}
    names = {case[1] + case[0] for case in next(iter(found.values()))}
    flows = {case[2] for case in next(iter(found.values()))}
    lines = ["| CWE | cases | " + " | ".join(columns) + " |",
             "| --- | --- |" + " --- |" * len(columns)]
    for kind in [*KINDS, None]:
        what = f"{kind} {KINDS[kind]}" if kind else "**all**"
        count = next(iter(columns.values()))[kind][0]
        lines.append(f"| {what} | {count} | "
                     + " | ".join(cell(column[kind][1]) for column in columns.values()) + " |")
    return TEXT.format(rows=len(names), flows=len(flows)) + "\n".join(lines) + "\n"


def main():
    """Measures and writes."""
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "out/release").resolve()
    library = out / "libhakmem.so"
    if not library.exists():  # the loader would go on without it
        sys.exit(f"no {library}")
    with tempfile.TemporaryDirectory() as work:
        program = build(work)
        found = {name: outcomes(program, {"LD_PRELOAD": str(library), **variables})
                 for name, variables in MODES.items()}
        found["system"] = outcomes(program, {})
    ends = found.pop("fence"), found.pop("fence, start")
    system = found.pop("system")
    found |= {"hakmem fence": ends[0], EITHER: either(*ends), "system": system}
    DOCUMENT.write_text(DOCUMENT.read_text().partition(MARK)[0] + part(found))
    print(f"{DOCUMENT}: {len(system)} cases")


if __name__ == "__main__":
    main()
