# SPDX-License-Identifier: MIT
"""What a session measured, computed from its JSON lines: one Row an allocator and case."""
import json
from dataclasses import dataclass

from . import stats
from .run import AGAIN

NOOP = "noop"


@dataclass(frozen=True)
class Row:
    """One allocator on one case. Medians; times per operation in ns, memory in MiB.

    ratio       the reference's time over this allocator's: below 1 the reference is faster
    verdict     of stats.verdict, None if the noise was not measured
    own_*       the same for the allocator's own time, without the program's (None if not known)
    """
    allocator: str
    version: str
    throughput: stats.Summary
    time_ns: float
    ratio: stats.Ratio
    verdict: int | None
    own_time_ns: float | None
    own_ratio: stats.Ratio | None
    peak_rss_mib: float
    minor_faults: float
    switches: float
    system_percent: float


@dataclass(frozen=True)
class Result:
    """A case: its rows, fastest first; floor is what two arms of one allocator differ by."""
    name: str
    title: str
    command: str
    reference: str
    floor: float | None
    rows: list


class Measured:
    """The records of a session."""

    def __init__(self, path):
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.header = next(record for record in records if record["record"] == "session")
        self.errors = [record for record in records if record["record"] == "error"]
        self.proofs = [record for record in records if record["record"] == "proof"]
        self.runs = [record for record in records if record["record"] == "run"]
        self.versions = {peer["name"]: peer["version"] for peer in self.header["allocators"]}

    def results(self, reference=None):
        """A Result of each case that was measured; the reference is the first allocator."""
        reference = reference or self.header["allocators"][0]["name"]
        found = [self._result(case, reference) for case in self.header["cases"]]
        return [result for result in found if result]

    def _result(self, case, reference):
        arms = {}
        for run in self.runs:
            if run["case"] == case["name"]:
                arms.setdefault(run["arm"], {})[run["round"]] = run
        if reference not in arms:
            return None
        floor = next((stats.floor(*_paired(arms[label.removesuffix(AGAIN)], again))
                      for label, again in arms.items() if label.endswith(AGAIN)
                      and label.removesuffix(AGAIN) in arms), None)
        noop_ns = stats.summarize(_times(arms[NOOP])).median if NOOP in arms else None
        if not case["minus_noop"]:
            noop_ns = None
        rows = [self._row(name, arms[reference], arms[name], floor, noop_ns)
                for name in self.versions if name in arms]
        rows.sort(key=lambda row: row.time_ns)
        return Result(case["name"], case["title"], case["command"], reference, floor, rows)

    def _row(self, name, reference, arm, floor, noop_ns):
        runs = list(arm.values())
        ratio = stats.paired_ratio(*_paired(reference, arm))
        own_time_ns = own_ratio = None
        if noop_ns is not None:
            own_time_ns = stats.summarize(_times(arm)).median - noop_ns
            own_ratio = stats.paired_ratio(*_paired(reference, arm, noop_ns))

        def median(key):
            return stats.summarize([run[key] for run in runs]).median
        busy_s = sum(run["user_s"] + run["system_s"] for run in runs)
        return Row(
            allocator=name, version=self.versions[name],
            throughput=stats.summarize([_throughput(run) for run in runs]),
            time_ns=stats.summarize(_times(arm)).median, ratio=ratio,
            verdict=stats.verdict(ratio, floor) if floor is not None else None,
            own_time_ns=own_time_ns, own_ratio=own_ratio,
            peak_rss_mib=median("peak_rss_kib") / 1024, minor_faults=median("minor_faults"),
            switches=median("voluntary_switches") + median("involuntary_switches"),
            system_percent=100 * sum(run["system_s"] for run in runs) / busy_s if busy_s else 0.0)


def _time_ns(run):
    """Of one operation."""
    return run["time_s"] / run["operations"] * 1e9


def _throughput(run):
    """In M ops/s, more exactly than it is printed."""
    return run["operations"] / run["time_s"] * 1e-6


def _times(arm):
    return [_time_ns(run) for run in arm.values()]


def _paired(first, second, minus_ns=0.0):
    """The times of two arms in the rounds that both have."""
    rounds = sorted(first.keys() & second.keys())
    return ([_time_ns(first[number]) - minus_ns for number in rounds],
            [_time_ns(second[number]) - minus_ns for number in rounds])
