# SPDX-License-Identifier: MIT
"""A session as tables for the terminal, and as the short Markdown tables of README and docs."""
from collections.abc import Callable
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from . import command, stats, units

FASTER_SLOWER = {-1: "faster", 0: "same", 1: "slower", None: "not known"}
LEAST_NEEDED = ("own ns/op", "memory calls", "instr/op", "instructions", "minor faults", "CV",
                "served by", "CPU s", "avg MiB", "ratio")
HUGE_PAGES = ("mimalloc asks for huge pages by default, which lowers its page faults and raises "
              "its resident memory.")


def tell(console, style, word, text):
    """A line that begins with a word in colour. What comes from elsewhere, names of files and
    programs, is no markup."""
    console.print(Text.assemble((word, style), f" {text}"), soft_wrap=True)


@dataclass(frozen=True)
class Column:
    """A column of a case's table; the terminal has no room for those with detail."""
    heading: str
    cell: Callable
    detail: bool = False


def columns(result):
    """The columns of a result's table."""
    time_unit = result.unit()
    per = "" if result.is_whole else "/op"

    def time(row, which="median"):
        return units.digits(result.shown_ns(row, which) / time_unit[0])
    shown = [
        Column("Allocator", lambda row: row.allocator),
        Column(f"{time_unit[1]}{per}", time),
        Column("ratio", lambda row: ratio(row.ratio, row.allocator == result.reference)),
        Column(f"{result.reference.rpartition('/')[2]} is", lambda row: verdict(row, result)),
        Column("CPU s", lambda row: f"{row.user_s + row.system_s:.3f}"),
        Column("peak MiB", lambda row: f"{row.peak_mib:.1f}"),
        Column("avg MiB", lambda row: f"{row.average_mib:.1f}"),
        Column("CV", lambda row: f"{row.time.cv:.1%}"),
        Column("minor faults", lambda row: f"{row.minor_faults:,.0f}"),
        Column("95 % of the median", lambda row: f"{time(row, 'low')} to {time(row, 'high')}",
               True),
        Column("mean", lambda row: time(row, "mean"), True),
        Column("SD", lambda row: time(row, "deviation"), True),
        Column("outliers", lambda row: str(len(row.time.outliers)), True),
        Column("first run", lambda row: f"{row.cold:.2f}x" if row.cold else "", True),
        Column("wall s", lambda row: f"{row.wall_s:.3f}", True),
        Column("user s", lambda row: f"{row.user_s:.3f}", True),
        Column("sys s", lambda row: f"{row.system_s:.3f}", True),
        Column("major", lambda row: f"{row.major_faults:,.0f}", True),
        Column("switches", lambda row: f"{row.voluntary_switches:,.0f} + "
               f"{row.involuntary_switches:,.0f}", True),
        Column("Version", lambda row: row.version, True),
    ]
    if not result.is_whole:
        shown.append(Column("CPU ns/op", lambda row: number(row.cpu_ns) if row.cpu_ns else "",
                            True))
    if result.group == command.GROUP:
        shown.append(Column("served by", lambda row: row.served))
    else:
        shown.append(Column("M ops/s", lambda row: number(row.throughput.median), True))
    if any(row.own_time is not None for row in result.rows):
        shown.append(Column("own ns/op", lambda row: number(row.own_time)))
    if any(row.calls is not None for row in result.rows):
        shown.append(Column("memory calls", lambda row: "" if row.calls is None
                            else f"{sum(row.calls.values()):,}"))
    if any(row.instructions is not None for row in result.rows):
        is_one = {row.operations for row in result.rows} == {1}
        shown.append(Column("instructions" if is_one else "instr/op", lambda row:
                            "" if row.instructions is None else number(row.instructions)))
    names = {name: unit for row in result.rows for name, (_, unit) in row.notes.items()}
    for name, unit in list(names.items())[:8]:
        shown.append(Column(f"{name.replace('_', ' ')} {unit}".strip(),
                            lambda row, name=name: number(row.notes[name][0])
                            if name in row.notes else "", True))
    return shown


def number(value):
    """Four digits that mean something."""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def ratio(value, is_reference=False):
    return "1" if is_reference else f"{value.median:.3f} [{value.low:.3f}, {value.high:.3f}]"


def verdict(row, result):
    return "" if row.allocator == result.reference else FASTER_SLOWER[row.verdict]


def floor(result):
    """What chance does to time and memory: one allocator, measured twice in each round."""
    if result.floor is None:
        return "noise not measured"
    memory = result.memory_floor
    return f"noise {result.floor:.1%}" + (f", in memory {memory:.1%}" if memory is not None else "")


def show(console, measured):
    """Prints the tables and what went wrong."""
    results = measured.results()
    for result in results:
        table = _case_table(console, result)
        console.print(table)
    if results:
        _show_losses(console, measured, results)
    reference = results[0].reference if results else measured.reference
    console.print(f"ratio: {reference}'s time over this one's, paired by round, with its "
                  "95 % interval; below 1 it is faster. No claim is made inside the noise.",
                  HUGE_PAGES)
    if len(results) > 1:
        _show_overall(console, measured, results)
    for skip in measured.skips:
        tell(console, "yellow", "skipped", f"{skip['case']}: {skip['reason']}")
    for error in measured.errors:
        tell(console, "red", "error", f"{error['case']}, {error['allocator']}: {error['message']}")
    _show_uncounted(console, measured)


def _show_uncounted(console, measured):
    """Why counts are missing: each reason once, with the cases and allocators that it holds for."""
    reasons = {}
    for record in measured.uncounted:
        cases = reasons.setdefault((record["kind"], record["message"]), {})
        cases.setdefault(record["case"], {})[record["allocator"]] = None
    for (kind, message), cases in reasons.items():
        where = ", ".join(f"{case} ({', '.join(names)})" for case, names in cases.items())
        tell(console, "yellow", "not counted", f"{kind} of {where}: {message}")


def _case_table(console, result):
    """A case as a table, without the columns that matter least if the terminal is narrow: a figure
    that is cut short would be a wrong one."""
    cells = [column for column in columns(result) if not column.detail]
    wide = console.options.update(max_width=1000)
    for heading in (None, *LEAST_NEEDED):
        cells = [column for column in cells if column.heading != heading]
        table = _filled(result, cells)
        if console.measure(table, options=wide).maximum <= console.width:
            break
    return table


def _filled(result, cells):
    head = result.title if result.group == command.GROUP else (
        f"{result.title} ({result.known})\n{result.command}")
    table = Table(title=f"{head}\n{result.measure}, {floor(result)}", title_justify="left",
                  box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for place, column in enumerate(cells):
        table.add_column(column.heading, justify="right" if place else "left", no_wrap=True)
    for row in result.rows:
        own = row.allocator == result.reference
        table.add_row(*(column.cell(row) for column in cells), style="bold" if own else None)
    return table


def _show_losses(console, measured, results):
    for what, losses in zip(("time", "peak memory"), measured.losses(results)):
        if len(results) == 1:
            said = losses[0].words if losses else "no other is surely ahead"
        else:
            said = f"another is ahead in {len(losses)} of {len(results)} cases"
            said += f", most in {_named(losses[0])}" if losses else ""
        console.print(f"in {what}: {said}", highlight=False)


def _named(loss):
    return f"{loss.result.title} ({loss.words})"


def _show_overall(console, measured, results):
    overall, cases = measured.overall(results)
    table = Table(title=f"geometric means over {len(cases)} cases, {measured.reference} = 1",
                  title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in ("Allocator", "time", "peak memory", "time x memory", "first in",
                    f"{measured.reference} faster / same / slower"):
        table.add_column(heading, justify="left" if heading == "Allocator" else "right")
    for one in overall:
        table.add_row(one.allocator, f"{one.time:.3f}", f"{one.memory:.3f}",
                      f"{one.time * one.memory:.3f}", str(one.first),
                      f"{one.slower} / {one.same} / {one.faster}"
                      if one.allocator != measured.reference else "",
                      style="bold" if one.allocator == measured.reference else None)
    console.print(table)
    console.print("over: " + ", ".join(result.name for result in cases), highlight=False)


def readme(measured, picture):
    """The Markdown between the README's marks: a table over all cases, and what to know of it."""
    overall, cases = measured.overall()
    machine = measured.header["environment"]
    lines = [f"![hakmem beside other allocators]({picture})", "",
             "| Allocator | Version | Time | Peak memory | First in |",
             "|---|---|---:|---:|---:|"]
    for one in overall:
        cells = [one.allocator, one.version, f"{one.time:.2f}", f"{one.memory:.2f}",
                 f"{one.first} of {len(cases)}"]
        if one.allocator == measured.reference:
            cells = [f"**{cell}**" for cell in cells]
        lines.append(f"| {' | '.join(cells)} |")
    left_out = [name for name in measured.versions
                if name not in {one.allocator for one in overall} and name != "noop"]
    lines += ["", f"Geometric means over the {len(cases)} cases that all of them ran, "
              f"{measured.reference} = 1, smaller is better. {machine.get('cpu')}, "
              f"{machine.get('processors')} processors, kernel {machine.get('kernel')}, "
              f"{measured.header['repeats']} interleaved runs of each. "
              "First in: cases in which its median time is the lowest, even if the lead is within "
              "the noise. "
              f"{HUGE_PAGES}"]
    if left_out:
        lines.append(f"Left out, because a run of theirs was an error: {', '.join(left_out)}.")
    lines += ["", *behind(measured)]
    return "\n".join(lines) + "\n"


def behind(measured):
    """Lines that sum up where the reference is not first, in time and in memory alike."""
    found = measured.results()
    lines = []
    for what, losses in zip(("In time", "In peak memory"), measured.losses(found)):
        if losses:
            most = "; ".join(_named(loss) for loss in losses[:2])
            lines.append(f"* {what}, another allocator is ahead by more than the noise in "
                         f"{len(losses)} of {len(found)} cases; the largest losses: {most}.")
        else:
            lines.append(f"* {what}, no other allocator is surely ahead in any case.")
    return [f"Where {measured.reference} is not first:", "", *lines, *failures(measured)]


def failures(measured):
    """Lines for the cases in which the reference has no number."""
    return [f"* {error['case']}: {error['allocator']} has no number: {error['message']}"
            for error in measured.errors if error["allocator"] == measured.reference]


def compare(console, measured, first, second):
    """Prints how the first does against the second, measured in one session; True if it is slower
    nowhere."""
    lines, slower = [], 0
    for result in measured.results(reference=first):
        row = result.row(second)
        if row:
            slower += row.verdict == 1
            lines.append((result.title, row.ratio, result.floor, row.verdict,
                          result.row(first).peak_mib / row.peak_mib))
    return _show_comparison(console, lines, first, second, slower)


def compare_sessions(console, first, second, allocator):
    """Prints how an allocator does in the first session against the second; True if it is slower
    nowhere. The sessions were measured apart, so nothing is paired."""
    older = {result.command: result for result in second.results()}
    lines, slower = [], 0
    for result in first.results():
        other = older.get(result.command)
        rows = result.row(allocator), other.row(allocator) if other else None
        if not all(rows):
            continue
        floors = [one.floor for one in (result, other)]
        width = max(floors) if None not in floors else None
        value = stats.unpaired_ratio(_times(first, result, allocator),
                                     _times(second, other, allocator))
        said = stats.verdict(value, width) if width is not None else None
        slower += said == 1
        lines.append((result.title, value, width, said, rows[0].peak_mib / rows[1].peak_mib))
    return _show_comparison(console, lines, "the first session", "the second", slower)


def _times(measured, result, allocator):
    from .results import time_ns
    return [time_ns(run) for run in measured.arms(result.name)[allocator].values()]


def _show_comparison(console, lines, first, second, slower):
    if not lines:
        console.print(f"no case was measured under both {first} and {second}")
        return False
    table = Table(box=box.SIMPLE)
    for heading in ("Case", f"{first} / {second}, time", "Noise", f"{first} is", "Peak memory"):
        table.add_column(heading, justify="left" if heading == "Case" else "right", no_wrap=True)
    for title, value, width, said, memory in lines:
        table.add_row(title, ratio(value), f"{width:.1%}" if width is not None else "",
                      FASTER_SLOWER[said], f"{memory:.2f}x")
    table.add_row(f"geometric mean of {len(lines)}",
                  f"{stats.geometric_mean([line[1].median for line in lines]):.3f}", "", "",
                  f"{stats.geometric_mean([line[4] for line in lines]):.2f}x", style="bold")
    console.print(table)
    return slower == 0
