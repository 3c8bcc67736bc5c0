# SPDX-License-Identifier: MIT
"""Which programs are run, with which arguments."""
import math
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One command line that is measured.

    estimate_s    about how long a run takes, in seconds, for the time left that is shown
    quick         the arguments of `--quick`
    check         arguments that make a very short run, to see who serves the program
    minus_noop    also state the allocator's own time: the run minus the same on the no-op allocator
    """
    name: str
    title: str
    workload: str
    arguments: str
    quick: str
    check: str
    estimate_s: float
    quick_estimate_s: float
    minus_noop: bool = False

    def words(self, quick=False):
        """The command, its program relative to the root of the repository."""
        return self._command(self.quick if quick else self.arguments)

    def check_words(self):
        return self._command(self.check)

    def estimate(self, quick=False):
        return self.quick_estimate_s if quick else self.estimate_s

    def _command(self, arguments):
        return [f"out/release/{self.workload}_system", *arguments.split()]


def _random_mixed(slots):
    return Case(f"random_mixed_{slots}", f"random mixed, {slots} slots", "bench_random_mixed",
                f"30000000 {slots} 42", f"5000000 {slots} 42", "100 16 42", 0.5, 0.1)


def _larson(threads):
    return Case(f"larson_{threads}", f"larson, {threads} thread{'s' if threads > 1 else ''}",
                "larson", f"5 8 1024 10000 100 12345 {threads}",
                f"1 8 1024 10000 100 12345 {threads}", "1 8 64 10 1 1 1", 5.1, 1.1)


def _mid_large(threads, estimate_s):
    return Case(f"mid_large_{threads}", f"mid-large, {threads} threads", "bench_mid_large_mt",
                f"{threads} 1000000 512 8192 32768 42", f"{threads} 150000 512 8192 32768 42",
                "1 10 4 8192 32768 42", estimate_s, estimate_s / 5, minus_noop=True)


CORE = (
    _random_mixed(256),
    _random_mixed(8192),
    *(_larson(threads) for threads in (1, 2, 4, 8)),
    _mid_large(2, 0.4),
    _mid_large(8, 1.5),
)

THROUGHPUT = re.compile(r"throughput: ([0-9]+\.[0-9]+) M ops/s")
OPERATIONS = re.compile(r"^operations: ([0-9]+)$", re.M)
TIME = re.compile(r"^time: ([0-9.]+) s$", re.M)


def select(only=None):
    """The cases whose names contain the word."""
    return [case for case in CORE if not only or only in case.name]


def read_output(stdout):
    """{operations, time_s, throughput} of a benchmark's output; throughput in M ops/s.

    Raises ValueError unless the last line is the throughput and agrees with the lines before it.
    """
    lines = stdout.strip().splitlines()
    last = THROUGHPUT.fullmatch(lines[-1]) if lines else None
    operations, time = OPERATIONS.search(stdout), TIME.search(stdout)
    if not (last and operations and time and float(time[1]) > 0):
        raise ValueError("the output does not end with a throughput line")
    result = {"operations": int(operations[1]), "time_s": float(time[1]),
              "throughput": float(last[1])}
    exact = result["operations"] / result["time_s"] * 1e-6
    if not math.isclose(exact, result["throughput"], rel_tol=0.01, abs_tol=0.01):
        raise ValueError(f"throughput {result['throughput']} M ops/s, computed {exact:.2f}")
    return result
