#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts what threads share: how often locks are had, frees published, heaps looked through.

    scale.py [--test] [--runs N] [SHAPE ...]

Workloads run on the built library; the counts are its own statistics at their end. `real`: caches
belong to the machine's processors. `each`: every thread has a cache and a heap of its own, as on a
machine with a processor for each (bench/scale/processors.c). Prints the tables of docs/SCALE.md,
the median of N runs (3) with least and most behind it where they differ.

--test compares runs of 8 threads, `each`, with BOUNDS: counts, no times. One run of TRIES within
them is enough, since in some refills bring little (docs/SCALE.md)."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = Path(os.environ.get("OUT", ROOT / "out/release"))
THREADS = (1, 2, 4, 8, 16, 64)
BLOCKS = 500_000  # about so many are allocated by each thread
SHOWN_HEAPS = 64  # the statistics show no more, one by one
TESTED_THREADS = 8


def random_mixed(threads):
    """Blocks of the sizes of bench_random_mixed at random, a tenth freed by the next thread."""
    return ["bench_mid_large_mt_system", threads, BLOCKS, 4096, 16, 1040, 42]


def larson(threads):
    """A server whose threads come and go."""
    return ["larson_system", 1, 8, 1024, 10000, 100, 12345, threads]


def producer_consumer(threads):
    """Half of the threads allocate, the others free."""
    pairs = threads // 2
    return ["producer_consumer_system", pairs, 64, 1000, 100000, 2 * BLOCKS, 256, 42]


def transactions(threads):
    """Requests that drop all they built."""
    return ["transactions_system", threads, BLOCKS // 50, 100, 64, 42]


SHAPES = {shape.__name__: shape for shape in
          (random_mixed, larson, producer_consumer, transactions)}

COLUMNS = {"refills": "refills and flushes", "entries": "heap lock acquisitions",
           "pool": "superslab pool lock acquisitions", "publishes": "publications",
           "searches": "searches of other heaps", "waits": "waits", "moved": "blocks moved",
           "lines": "lines written, at most", "heaps": "heaps"}


# A quarter above the most of eight runs, but for those in which refills bring little: that happens
# too often to random_mixed. What larson does in its second depends on the machine.
BOUNDS = {"producer_consumer": {"refills": 3.4, "entries": 4.3},
          "transactions": {"refills": 0.31, "entries": 0.44}}
TRIES = 8


def run(shape, threads, is_each):
    """The statistics of one run, by name."""
    environment = {"HAKMEM_STATS": "raw", "LD_PRELOAD": str(OUT / "libhakmem.so")}
    if is_each:
        environment |= {"HAKMEM_CACHES": "thread", "SIMULATED_PROCESSORS": str(SHOWN_HEAPS),
                        "LD_PRELOAD": f"{OUT / 'libprocessors.so'} {OUT / 'libhakmem.so'}"}
    program, *arguments = SHAPES[shape](threads)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "stats")
        environment["HAKMEM_STATS_FILE"] = str(file)
        subprocess.run([OUT / program, *map(str, arguments)], check=True, timeout=120,
                       stdout=subprocess.DEVNULL, env=environment)
        return {name: int(number) for name, number in
                (line.split(": ") for line in file.read_text().splitlines())}


def total(numbers, prefix, ending):
    """The sum of a number of all heaps, classes or caches."""
    return sum(number for name, number in numbers.items()
               if name.startswith(prefix) and name.endswith(ending))


def counts(numbers):
    """The columns: per 1,000 calls of malloc and free, but for the last one."""
    if numbers["heaps"] > SHOWN_HEAPS:
        sys.exit(f"{numbers['heaps']} heaps: the entries of {SHOWN_HEAPS} are known")
    calls = 2 * (total(numbers, "class_", "_popped_blocks") + numbers["refills"])
    made = numbers["recycled_slabs"] + numbers["purged_slabs"] + numbers["fresh_slabs"]
    found = {"refills": numbers["refills"] + numbers["flushes"],
             "entries": total(numbers, "heap_", "_entries"),
             "pool": made + 2 * numbers["fresh_slabs"] + numbers["retired_slabs"],
             "publishes": numbers["remote_publishes"],
             "searches": numbers["stolen_slabs"] + made, "waits": total(numbers, "waits_", "")}
    found["moved"] = (2 * total(numbers, "class_", "_taken_blocks")
                      - total(numbers, "class_", "_live_blocks")
                      - total(numbers, "class_", "_cached_blocks"))
    found["lines"] = (2 * found["entries"] + 2 * found["moved"] + 5 * found["publishes"]
                      + 8 * found["pool"])
    return {name: count * 1000 / calls for name, count in found.items()} | {
        "heaps": numbers["heaps"]}


def shown(values):
    """Median, least and most."""
    texts = [f"{value:.3f}" if value < 10 else f"{value:.1f}" for value in
             (statistics.median(values), min(values), max(values))]
    texts = [text.rstrip("0").rstrip(".") for text in texts]
    return texts[0] if texts[1] == texts[2] else f"{texts[0]} ({texts[1]} to {texts[2]})"


def print_table(shape, runs):
    """One table of docs/SCALE.md."""
    print(f"\n### {shape}\n\n| threads | processors | {' | '.join(COLUMNS.values())} |\n"
          + "| --- " * (2 + len(COLUMNS)) + "|")
    for is_each in (False, True):
        for threads in THREADS[shape == "producer_consumer":]:
            found = [counts(run(shape, threads, is_each)) for _ in range(runs)]
            cells = [shown([one[name] for one in found]) for name in COLUMNS]
            print(f"| {threads} | {'each' if is_each else 'real'} | {' | '.join(cells)} |",
                  flush=True)


def is_within(shape, bounds):
    """Whether one run shares no more than that; prints what it did."""
    found = counts(run(shape, TESTED_THREADS, True))
    print(f"{shape}, per 1,000 calls: " + ", ".join(
        f"{COLUMNS[name]} {found[name]:.3f} (at most {bound})" for name, bound in bounds.items()))
    return all(found[name] <= bound for name, bound in bounds.items())


def test():
    """1 if more is shared than was, else 0."""
    failed = [shape for shape, bounds in BOUNDS.items()
              if not any(is_within(shape, bounds) for _ in range(TRIES))]
    for shape in failed:
        print(f"FAILED {shape}: above its bounds in {TRIES} runs")
    return int(bool(failed))


def main():
    """Prints the tables, or tests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("shapes", nargs="*", choices=[[], *SHAPES])
    options = parser.parse_args()
    if options.test:
        return test()
    for shape in options.shapes or SHAPES:
        print_table(shape, options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
