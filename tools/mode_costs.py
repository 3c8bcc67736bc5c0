#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions of the benchmarks in each mode, by callgrind.

    mode_costs.py [--table] [CASE ...]

No mode but hardened may take more than 1 % above `minimal`: a mode is option values, and features
live on slow paths. The cases are those of tools/hakbench/cases.txt that do the same each time: one
thread, one process, no clock. --table prints the table of docs/CONFIG.md. As a test it is part of
`./hak test --full` (HAK_FULL)."""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from hakbench import counts, plan  # pylint: disable=wrong-import-position

ROOT = Path(__file__).resolve().parent.parent
OUT = Path(os.environ.get("OUT", ROOT / "out/release"))
MODES = ("minimal", "balanced", "fast", "learning")
MOST_PERCENT = 1.0
# What reading other settings costs, and a loader that finds other addresses each time.
START_INSTRUCTIONS = 10000
CASES = ("random_mixed_256", "random_mixed_8192", "random_mixed_large", "burst_fifo",
         "burst_random", "transactions_1", "mid_large_1", "realloc_growth", "big_buffers",
         "touch_free", "touch_free_4m", "calloc_large", "huge_lookup", "valley")


def counted(case, mode):
    """Instructions of the very short run, the program's start among them."""
    program, *arguments = case.tiny_words()
    variables = {"HAKMEM_MODE": mode, "LD_PRELOAD": str(OUT / "libhakmem.so")}
    return counts.instructions(ROOT, [OUT / Path(program).name, *arguments], variables)[0]


def measured(cases):
    """(case, {mode: instructions}) of each."""
    for case in cases:
        found = {mode: counted(case, mode) for mode in MODES}
        print(f"{case.name}: " + ", ".join(f"{mode} {count}" for mode, count in found.items()),
              file=sys.stderr)
        yield case, found


def percent(found, mode):
    """What a mode takes more than minimal."""
    return (found[mode] / found["minimal"] - 1) * 100


def print_table(results):
    """For docs/CONFIG.md."""
    print("| benchmark | minimal, million instructions | " + " | ".join(MODES[1:]) + " |")
    print("| --- |" + " --- |" * len(MODES))
    for case, found in results:
        cells = [f"{percent(found, mode):+.2f} %" for mode in MODES[1:]]
        print(f"| `{' '.join([case.workload, case.tiny])}` | {found['minimal'] / 1e6:.1f} | "
              + " | ".join(cells) + " |")


def main():
    """Counts, and says which mode takes too many."""
    names = [word for word in sys.argv[1:] if not word.startswith("--")] or CASES
    is_test = len(sys.argv) == 2 and sys.argv[1] == "--test"
    if is_test and not os.environ.get("HAK_FULL"):
        print("skipped: takes minutes; ./hak test --full")
        return 77
    cases = [case for case in plan.read_table() if case.name in names]
    if len(cases) != len(names):
        sys.exit(__doc__)
    results = list(measured(cases))
    if "--table" in sys.argv:
        print_table(results)
    worst = [f"{case.name}: {mode} takes {percent(found, mode):.2f} % more than minimal"
             for case, found in results for mode in MODES[1:]
             if percent(found, mode) > MOST_PERCENT
             and found[mode] > found["minimal"] + START_INSTRUCTIONS]
    print("\n".join(worst) or f"{len(results)} benchmarks: no mode takes more than "
          f"{MOST_PERCENT} % above minimal")
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
