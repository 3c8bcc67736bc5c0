# SPDX-License-Identifier: MIT
"""Which programs are run, with which arguments, and what their output says.

Imports the standard library only, so that the demonstration can use it too.
"""
import math
import re
from dataclasses import dataclass
from pathlib import Path

from .launcher import Place

TABLE = Path(__file__).with_name("cases.txt")
PROGRAM_ESTIMATE_S = 4.0
# A trace takes 3 to 5 bytes for a call; 10 million calls take about half a second.
REPLAYED_BYTES = 40_000_000
ESTIMATE_S, QUICK_ESTIMATE_S = 0.8, 0.2
TIME_STEP_S = 1e-6
# hakmem and most others take less than 6 s in every row. An allocator that takes longer than this
# has failed in the row: if it ended at last, it would be waited for in each round.
ROW_TIMEOUT_S = 120


@dataclass(frozen=True)
class Case:
    """One command line that is measured.

    workload  the program whose allocator is proved once; for a script its own name
    quick     arguments of `--quick`, None if it is no case of that
    tiny      arguments of a very short run
    threads   its place on the curve, None if it is on none
    script    of bench/programs: gets the library in BENCH_PRELOAD
    known     the name under which the field knows the workload
    command   the words of a program from elsewhere, instead of workload and arguments
    place     where it runs
    measured  what of its output says the time or rate (suite.Figure); None: the time it took
    expected_s  about how long it takes, if that is known
    """
    name: str
    group: str
    threads: int | None
    workload: str
    arguments: str
    quick: str | None
    tiny: str
    title: str
    script: str = ""
    known: str = ""
    command: tuple = ()
    place: Place = Place(timeout_s=ROW_TIMEOUT_S)
    measured: object = None
    expected_s: float | None = None

    @property
    def curve(self):
        return self.name.rpartition("_")[0] if self.threads else None

    def words(self, quick=False):
        """The command, its program relative to the root of the repository."""
        arguments = self.arguments if self.quick is None or not quick else self.quick
        return self._command(arguments)

    def tiny_words(self):
        return self._command(self.tiny)

    def estimate(self, quick=False):
        """About how long a run takes, in seconds, for the time left that is shown at first."""
        if self.expected_s:
            return self.expected_s
        if self.script or self.command:
            return PROGRAM_ESTIMATE_S
        return QUICK_ESTIMATE_S if quick else ESTIMATE_S

    def read(self, done):
        """{operations, time_s, throughput, notes} of a run; ValueError if it does not say them."""
        if not self.command:
            return read_output(done.stdout)
        if self.measured:
            return self.measured.read(done.stdout)
        return whole_run(done.cost.wall_s)

    def _command(self, arguments):
        if self.command:
            return list(self.command)
        program = self.script or f"out/release/{self.workload}_system"
        return [program, *arguments.split()]


def read_table(path=TABLE):
    """The cases of the table, whether their programs exist or not."""
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 9:
            raise ValueError(f"{path.name}:{number}: {len(cells)} columns, expected 9")
        name, group, threads, program, arguments, quick, tiny, known, title = cells
        cases.append(Case(name, group, None if threads == "-" else int(threads), program,
                          arguments, None if quick == "-" else quick, tiny, title, known=known))
    return cases


def _unlisted(root, cases):
    """Programs of bench/workloads that the table forgot, with their defaults."""
    known = {case.workload for case in cases} | {"replay"}
    for source in sorted((root / "bench/workloads").glob("*.c")):
        if source.stem not in known:
            yield Case(source.stem, "others", None, source.stem, "", None, "",
                       source.stem.replace("_", " "))


def _traces(root):
    for trace in sorted((root / "bench/traces").glob("*")):
        if trace.is_file() and not trace.suffix == ".md":
            words, stem = str(trace.relative_to(root)), trace.name.split(".")[0]
            repeats = max(REPLAYED_BYTES // trace.stat().st_size, 1)
            yield Case(f"replay_{stem}", "replayed programs", None, "replay", f"{words} {repeats}",
                       None, f"{words} 1", f"the allocations of {stem}, replayed",
                       known=f"{stem}.trace")


def _programs(root):
    for script in sorted((root / "bench/programs").glob("*.sh")):
        if packages(script) is not None:
            yield Case(script.stem, "real programs", None, script.stem, "", None, "",
                       _title(script), str(script.relative_to(root)), script.stem)


def _title(script):
    """What a script of bench/programs does, in words."""
    found = re.search(r"^# title: *(.*)$", script.read_text(encoding="utf-8"), re.M)
    return found[1] if found else script.stem.replace("_", " ")


def packages(script):
    """The Debian packages that a script of bench/programs needs; None if it is no such script."""
    found = re.search(r"^# packages:(.*)$", script.read_text(encoding="utf-8"), re.M)
    return found[1].split() if found else None


def discover(root):
    """All cases whose programs have sources in bench/."""
    table = [case for case in read_table()
             if (root / f"bench/workloads/{case.workload}.c").exists()]
    replay = list(_traces(root)) if (root / "bench/workloads/replay.c").exists() else []
    return [*table, *_unlisted(root, table), *replay, *_programs(root)]


def select(root, only=None, quick=False):
    """The cases whose name or group contains one of the words; --quick has fewer."""
    cases = discover(root)
    return chosen(cases, only) if only else [case for case in cases if not quick or case.quick]


def chosen(cases, only):
    """The cases whose name or group contains one of the words; all without any."""
    return [case for case in cases if any(word in case.name or word in case.group
                                          for word in only or [""])]


THROUGHPUT = re.compile(r"throughput: ([0-9]+(?:\.[0-9]+)?) M ops/s")
OPERATIONS = re.compile(r"^operations: ([0-9]+)$", re.M)
TIME = re.compile(r"^time: ([0-9.]+) s$", re.M)
NOTE = re.compile(r"^([a-z][\w .-]*): (-?[0-9]+(?:\.[0-9]+)?)(?: (\S.*))?$", re.M)


def read_output(stdout):
    """{operations, time_s, throughput, notes} of a benchmark's output; throughput in M ops/s,
    notes {name: [number, unit]}. A program that counts no operations says its throughput only.

    Raises ValueError unless the last line is the throughput and agrees with the lines before it.
    """
    lines = stdout.strip().splitlines()
    last = THROUGHPUT.fullmatch(lines[-1]) if lines else None
    if not last or float(last[1]) <= 0:
        raise ValueError("the output does not end with a throughput line")
    operations, time = OPERATIONS.search(stdout), TIME.search(stdout)
    result = {"throughput": float(last[1]), "notes": {
        name: [float(number), unit] for name, number, unit in NOTE.findall(stdout)
        if name not in ("operations", "time", "throughput")}}
    if operations and time and float(time[1]) > 0:
        exact = int(operations[1]) / float(time[1]) * 1e-6
        # The time is rounded to a microsecond, the throughput to a hundredth.
        rounding = 0.01 + TIME_STEP_S / float(time[1])
        if not math.isclose(exact, result["throughput"], rel_tol=rounding, abs_tol=0.01):
            raise ValueError(f"throughput {result['throughput']} M ops/s, computed {exact:.2f}")
        result |= {"operations": int(operations[1]), "time_s": float(time[1]),
                   "throughput": exact}
    return result


def whole_run(time_s):
    """The result of a program that is one operation."""
    return {"operations": 1, "time_s": time_s, "throughput": 1e-6 / time_s, "notes": {}}
