# SPDX-License-Identifier: MIT
"""What a session's runs say: a Result a case, a Row an allocator and case, an Overall a session."""
import json
import re
from dataclasses import dataclass
from pathlib import Path

from . import command, plan, stats, suite, units
from .peers import NOOP
from .run import AGAIN, _sound

ROOT = Path(__file__).absolute().parents[2]
# Of these the whole time is told, of others that of an operation.
PROGRAMS = (command.GROUP, "real programs", suite.NAME, "replayed programs")
# A difference in memory below it is no loss: it is within what a start differs by.
LEAST_MEMORY = 0.02
# Fewer say nothing of what chance does.
LEAST_RUNS = 3

BOUND = re.compile(r"bound to ([^;]+)")

# The share of all cases that an allocator in the means has at least.
NEARLY = 0.9


@dataclass(frozen=True)
class Row:
    """One allocator on one case; medians, times in ns per operation, memory in MiB.

    ratio        the reference's time over this allocator's: below 1 the reference is faster
    verdict      of stats.verdict, None if the noise was not measured
    own_time     the time without the program's own (on the no-op allocator), None if not known
    cold         the first run's time over the median of the others
    calls        {memory system call: count} of the tiny run, None if not counted
    instructions of one operation, None if not counted
    operations   of a run, None if they are not counted or not always the same
    served       the library that the program's malloc was bound to, empty if no proof says it
    rss          [(ms, MiB)] of the first round
    """
    allocator: str
    version: str
    time: stats.Summary
    throughput: stats.Summary
    ratio: stats.Ratio
    verdict: int | None
    own_time: float | None
    cold: float | None
    cpu_ns: float | None
    wall_s: float
    user_s: float
    system_s: float
    peak_mib: float
    average_mib: float
    minor_faults: float
    major_faults: float
    voluntary_switches: float
    involuntary_switches: float
    notes: dict
    calls: dict | None
    instructions: float | None
    operations: float | None
    served: str
    rss: list


@dataclass(frozen=True)
class Result:
    """A case: its rows, fastest first; floor is what two arms of one allocator differ by in time,
    memory_floor in peak memory; `known` is the workload's name in the field."""
    name: str
    title: str
    known: str
    group: str
    threads: int | None
    curve: str | None
    command: str
    reference: str
    floor: float | None
    memory_floor: float | None
    rows: list

    @property
    def is_whole(self):
        """Whether the time of the whole program is told rather than that of an operation."""
        counts = {row.operations for row in self.rows}
        return self.group in PROGRAMS and len(counts) == 1 and None not in counts

    @property
    def measure(self):
        return "time" if self.is_whole else "time per operation"

    def shown_ns(self, row, which="median"):
        """The time that is told of a row, or an end of its interval."""
        return getattr(row.time, which) * (row.operations if self.is_whole else 1)

    def unit(self):
        """The unit of all times of the case: that of the fastest."""
        return units.time_unit(self.shown_ns(self.rows[0]))

    def row(self, allocator):
        return next((row for row in self.rows if row.allocator == allocator), None)


@dataclass(frozen=True)
class Loss:
    """A case in which another allocator is surely ahead of the reference, in time or in memory."""
    result: Result
    best: Row
    others: int
    factor: float
    words: str


@dataclass(frozen=True)
class Overall:
    """Geometric means over the cases that all have: time and peak memory over the reference's."""
    allocator: str
    version: str
    time: float
    memory: float
    first: int
    slower: int
    same: int
    faster: int


class Measured:
    """The records of a session."""

    def __init__(self, path):
        records = list(_sound(path.read_text(encoding="utf-8").splitlines()))

        def kept(kind):
            return [record for record in records if record["record"] == kind]
        self.header = kept("session")[0]
        self.errors, self.proofs, self.skips = kept("error"), kept("proof"), kept("skip")
        self.runs = kept("run")
        self.versions = {peer["name"]: peer["version"] for peer in self.header["allocators"]}
        self.reference = self.header["allocators"][0]["name"]
        self._failed = {(error["case"], error["allocator"]) for error in self.errors}
        self._titles = {case.name: case for case in plan.discover(ROOT)}
        self._first = {(run["case"], run["arm"]): run for run in kept("warmup")}
        # A program from elsewhere is a workload of its own name.
        self._served = {(proof["workload"], proof["allocator"]): BOUND.search(proof["proof"])[1]
                        for proof in self.proofs if BOUND.search(proof["proof"])}
        self._calls = {(r["case"], r["allocator"]): r["calls"] for r in kept("syscalls")}
        self._instructions = {(r["case"], r["allocator"]): r["instructions"] / r["operations"]
                              for r in kept("instructions") if r["operations"]}
        counted = {"syscalls": self._calls, "instructions": self._instructions}
        self.uncounted = [r for r in kept("uncounted")
                          if (r["case"], r["allocator"]) not in counted[r["kind"]]]

    def arms(self, name):
        """{arm: {round: run}} of a case; what failed anywhere is left out."""
        arms = {}
        for run in self.runs:
            if run["case"] == name and (name, run["arm"].removesuffix(AGAIN)) not in self._failed:
                arms.setdefault(run["arm"], {})[run["round"]] = run
        return arms

    def results(self, reference=None):
        """A Result of each case that was measured; the reference is the first allocator."""
        found = [self._result(case, reference or self._reference_of(case))
                 for case in self.header["cases"]]
        return [result for result in found if result]

    def _reference_of(self, case):
        """The first allocator; of a program of the user's the first that has figures."""
        if case.get("group") != command.GROUP:
            return self.reference
        return next((name for name in self.versions if name != NOOP and
                     name in self.arms(case["name"])), self.reference)

    def _result(self, case, reference):
        arms = self.arms(case["name"])
        if reference not in arms or reference == NOOP:
            return None
        floor = memory_floor = None
        for label, again in arms.items():
            first = arms.get(label.removesuffix(AGAIN))
            if label.endswith(AGAIN) and first:
                floor = stats.floor(*_paired(first, again, time_ns))
                memory_floor = stats.floor(*_paired(first, again, _peak_mib))
        noop = arms.get(NOOP)
        noop_ns = stats.summarize([time_ns(run) for run in noop.values()]).median if noop else None
        rows = [self._row(case["name"], name, arms, reference, floor, noop_ns)
                for name in self.versions if name in arms and name != NOOP]
        rows.sort(key=lambda row: row.time.median)
        title, known, group = self._names(case)
        return Result(case["name"], title, known, group, case.get("threads"), case.get("curve"),
                      case["command"], reference, floor, memory_floor, rows)

    def _names(self, case):
        """(title, known name, group), of today for a case of ours."""
        now, group = self._titles.get(case["name"]), case.get("group", "")
        if now and group not in (command.GROUP, suite.NAME):
            return now.title, now.known, now.group
        return case["title"], case.get("known", ""), group

    def _row(self, case, name, arms, reference, floor, noop_ns):
        runs = list(arms[name].values())
        ratio = stats.paired_ratio(*_paired(arms[reference], arms[name], time_ns))

        def median(key):
            return stats.summarize([run[key] for run in runs]).median
        time = stats.summarize([time_ns(run) for run in runs])
        first = self._first.get((case, name))
        counted = all("operations" in run for run in runs)
        counts = {run.get("operations") for run in runs}
        return Row(
            served=self._served.get((case, name), ""),
            operations=counts.pop() if len(counts) == 1 else None,
            allocator=name, version=self.versions[name], time=time,
            throughput=stats.summarize([run["throughput"] for run in runs]), ratio=ratio,
            verdict=stats.verdict(ratio, floor) if floor is not None and
            time.count >= LEAST_RUNS else None,
            own_time=time.median - noop_ns if noop_ns is not None else None,
            cold=time_ns(first) / time.median if first else None,
            cpu_ns=stats.summarize([(run["user_s"] + run["system_s"]) / run["operations"] * 1e9
                                    for run in runs]).median if counted else None,
            wall_s=median("wall_s"), user_s=median("user_s"), system_s=median("system_s"),
            peak_mib=median("peak_rss_kib") / 1024,
            average_mib=median("average_rss_kib") / 1024,
            minor_faults=median("minor_faults"), major_faults=median("major_faults"),
            voluntary_switches=median("voluntary_switches"),
            involuntary_switches=median("involuntary_switches"), notes=_notes(runs),
            calls=self._calls.get((case, name)),
            instructions=self._instructions.get((case, name)),
            rss=[(at_ms, kib / 1024) for run in runs for at_ms, kib in run.get("rss", [])])

    def overall(self, results=None):
        """An Overall of each allocator that has nearly every case, best time first, and the cases
        that all of these have."""
        results = self.results() if results is None else results
        names = [name for name in self.versions if name != NOOP]
        # An allocator that fails often is left out rather than its cases; where one fails now and
        # then (a program that brings its own, a hang), the case is.
        names = [name for name in names
                 if sum(result.row(name) is not None for result in results)
                 >= NEARLY * len(results)]
        results = [result for result in results if all(result.row(name) for name in names)]
        found = [self._overall(name, results) for name in names] if results else []
        return sorted(found, key=lambda overall: overall.time), results

    def _overall(self, name, results):
        rows = [result.row(name) for result in results]
        bases = [result.row(result.reference) for result in results]
        verdicts = [row.verdict for row in rows]
        return Overall(
            name, self.versions[name],
            stats.geometric_mean([1 / row.ratio.median for row in rows]),
            stats.geometric_mean([row.peak_mib / base.peak_mib
                                  for row, base in zip(rows, bases)]),
            sum(result.rows[0].allocator == name for result in results),
            verdicts.count(-1), verdicts.count(0), verdicts.count(1))


    def losses(self, results=None):
        """([Loss in time], [Loss in peak memory]) of the reference, the largest first."""
        time, memory = [], []
        for result in self.results() if results is None else results:
            own = result.row(result.reference)
            faster = [row for row in result.rows if row.verdict == 1]
            if faster:
                best = max(faster, key=lambda row: row.ratio.median)
                time.append(_loss(result, best, faster, best.ratio.median,
                                  f"{units.change(best.ratio.median, 'faster', 'slower')}; peak "
                                  f"{_pair(own, best)}"))
            least = max(LEAST_MEMORY, result.memory_floor or 0)
            leaner = [row for row in result.rows if own.peak_mib / row.peak_mib > 1 + least]
            if leaner:
                best = min(leaner, key=lambda row: row.peak_mib)
                factor = own.peak_mib / best.peak_mib
                said = {1: "and " + units.change(best.ratio.median, "faster", "slower"),
                        -1: "but " + units.change(best.ratio.median, "faster", "slower")}
                memory.append(_loss(result, best, leaner, factor,
                                    f"{units.times(factor)} leaner; peak {_pair(own, best)}; "
                                    f"{said.get(best.verdict, 'as fast')}"))
        return [sorted(losses, key=lambda loss: -loss.factor) for losses in (time, memory)]


def _loss(result, best, ahead, factor, words):
    return Loss(result, best, len(ahead) - 1, factor, f"{best.allocator} {words}")


def _pair(own, best):
    """Whose memory is how much: 33 MiB, hakmem 476 MiB."""
    return f"{units.memory(best.peak_mib)}, {own.allocator} {units.memory(own.peak_mib)}"


def time_ns(run):
    """Of one operation."""
    if "operations" in run:
        return run["time_s"] / run["operations"] * 1e9
    return 1e3 / run["throughput"]


def _peak_mib(run):
    return run["peak_rss_kib"] / 1024


def _notes(runs):
    """{name: (median, unit)} of what a program said beside its throughput, in its order."""
    notes = {}
    for run in runs:
        for name, (number, unit) in run.get("notes", {}).items():
            notes.setdefault(name, ([], unit))[0].append(number)
    return {name: (stats.summarize(numbers).median, unit)
            for name, (numbers, unit) in notes.items()}


def _paired(first, second, value):
    """The values of two arms in the rounds that both have."""
    rounds = sorted(first.keys() & second.keys())
    return [value(first[number]) for number in rounds], [value(second[number])
                                                         for number in rounds]


def load(path):
    """The Measured of a file, which need not be the one that was written here."""
    try:
        return Measured(path)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except (LookupError, TypeError, AttributeError, ValueError):
        raise ValueError(f"{path} holds no session of ./hak bench") from None
