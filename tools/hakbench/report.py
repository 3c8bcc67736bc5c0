# SPDX-License-Identifier: MIT
"""A session as tables for the terminal and for Markdown, and as a plot."""
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from rich import box
from rich.table import Table

from . import stats
from .results import Measured

FASTER_SLOWER = {-1: "faster", 0: "same", 1: "slower", None: "not known"}
HIGHLIGHT, OTHERS, INK = "#d9480f", "#adb5bd", "#343a40"
NOTES = """\
*Time* is that of the first allocator divided by this one's: the median of the ratios of runs made
in the same round, with its 95 % bootstrap interval. Below 1 the first allocator is faster. A
difference inside the noise (what the same allocator, measured twice in the same rounds, differs by)
counts as *same*. *Own time* leaves out what the program itself takes, measured on an allocator that
does nothing. *Outliers* are runs more than two standard deviations from the mean; they are kept.
mimalloc asks for huge pages by default, which lowers its page faults and raises its peak memory.
"""


@dataclass(frozen=True)
class Column:
    """A column of a case's table; the terminal has no room for those with detail."""
    heading: str
    cell: Callable
    detail: bool = False


def columns(result):
    """The columns of a result's table."""
    shown = [
        Column("Allocator", lambda row: row.allocator),
        Column("Version", lambda row: row.version),
        Column("M ops/s", lambda row: f"{row.throughput.median:.2f}"),
        Column("CV", lambda row: f"{row.throughput.cv:.1%}"),
        Column("Outliers", lambda row: str(len(row.throughput.outliers)), detail=True),
        Column("Time", lambda row: _ratio(row, result, row.ratio)),
        Column(f"{result.reference} is", lambda row: _verdict(row, result)),
        Column("Peak MiB", lambda row: f"{row.peak_rss_mib:.1f}"),
        Column("Faults", lambda row: f"{row.minor_faults:,.0f}"),
        Column("Switches", lambda row: f"{row.switches:,.0f}", detail=True),
        Column("Kernel", lambda row: f"{row.system_percent:.0f} %"),
    ]
    if any(row.own_ratio for row in result.rows):
        shown[7:7] = [
            Column("Own ns/op", lambda row: f"{row.own_time_ns:.1f}", detail=True),
            Column("Own time", lambda row: _ratio(row, result, row.own_ratio)),
        ]
    return shown


def _ratio(row, result, ratio):
    if row.allocator == result.reference:
        return "1"
    return f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def _verdict(row, result):
    return "" if row.allocator == result.reference else FASTER_SLOWER[row.verdict]


def _floor(result):
    return f"noise {result.floor:.1%}" if result.floor is not None else "noise not measured"


def show(console, measured):
    """Prints the tables and what went wrong."""
    for result in measured.results():
        table = Table(title=f"{result.title}\n{result.command}, {_floor(result)}",
                      title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        cells = [column for column in columns(result) if not column.detail]
        for place, column in enumerate(cells):
            table.add_column(column.heading, justify="left" if place < 2 else "right",
                             no_wrap=True)
        for row in result.rows:
            own = row.allocator == result.reference
            table.add_row(*(column.cell(row) for column in cells), style="bold" if own else None)
        console.print(table)
    console.print("Time: the first allocator's over this one's, with its 95 % interval; "
                  "below 1 the first is faster.")
    for error in measured.errors:
        console.print(f"[red]error[/] {error['case']}, {error['allocator']}: {error['message']}")


def markdown(measured, plot_name):
    """The document of a session."""
    lines = ["# Benchmarks", "", f"![throughput of each allocator]({plot_name})", "", NOTES]
    lines += ["| | |", "|---|---|"]
    lines += [f"| {key.replace('_', ' ')} | {value} |"
              for key, value in measured.header["environment"].items()]
    lines += [f"| repeats | {measured.header['repeats']} after one warm-up, interleaved |", ""]
    for result in measured.results():
        cells = columns(result)
        lines += [f"## {result.title}", "", f"`{result.command}`, {_floor(result)}", "",
                  "| " + " | ".join(column.heading for column in cells) + " |",
                  "|---|---|" + "---:|" * (len(cells) - 2)]
        lines += ["| " + " | ".join(column.cell(row) for column in cells) + " |"
                  for row in result.rows]
        lines.append("")
    lines += ["## Who served the runs", "", "| Program | Allocator | Proof |", "|---|---|---|"]
    lines += [f"| {proof['workload']} | {proof['allocator']} | {proof['proof']} |"
              for proof in measured.proofs]
    lines += [f"| {error['case']} | {error['allocator']} | **not measured**: {error['message']} |"
              for error in measured.errors]
    return "\n".join(lines) + "\n"


def plot(measured, path):
    """One panel a case: throughput of each allocator with the 95 % interval of its median."""
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "hakbench"
    from matplotlib import pyplot
    results = measured.results()
    rows = (len(results) + 1) // 2
    figure, axes = pyplot.subplots(rows, 2, figsize=(10, 0.6 + 2.1 * rows), squeeze=False)
    for axis in axes.flat[len(results):]:
        axis.set_visible(False)
    for axis, result in zip(axes.flat, results):
        _panel(axis, result, list(measured.versions))
    figure.suptitle("Throughput in M ops/s: longer is better", color=INK)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _panel(axis, result, order):
    rows = sorted(result.rows, key=lambda row: order.index(row.allocator), reverse=True)
    medians = [row.throughput.median for row in rows]
    errors = [[row.throughput.median - row.throughput.low for row in rows],
              [row.throughput.high - row.throughput.median for row in rows]]
    colours = [HIGHLIGHT if row.allocator == result.reference else OTHERS for row in rows]
    bars = axis.barh([row.allocator for row in rows], medians, xerr=errors, color=colours,
                     ecolor=INK, error_kw={"elinewidth": 1, "capsize": 2})
    axis.bar_label(bars, [f" {median:.4g}" for median in medians], color=INK, fontsize=8)
    axis.set_title(result.title, loc="left", fontsize=10, color=INK)
    axis.margins(x=0.15)
    axis.tick_params(labelsize=8, length=0)
    axis.spines[["top", "right", "left"]].set_visible(False)


def publish(path, folder, name):
    """Writes NAME.md, NAME.svg and NAME.jsonl of a session's runs into a folder."""
    measured = Measured(path)
    folder.mkdir(parents=True, exist_ok=True)
    plot(measured, folder / f"{name}.svg")
    (folder / f"{name}.md").write_text(markdown(measured, f"{name}.svg"), encoding="utf-8")
    target = folder / f"{name}.jsonl"
    if target != path:
        shutil.copyfile(path, target)
    return folder / f"{name}.md"


def compare(console, measured, first, second):
    """Prints how the first does against the second; True if it is slower nowhere."""
    table = Table(box=box.SIMPLE)
    for heading in ("Case", f"{first} / {second}, time", "Noise", f"{first} is", "Peak memory"):
        table.add_column(heading, justify="left" if heading == "Case" else "right", no_wrap=True)
    times, memories, slower = [], [], 0
    for result in measured.results(reference=first):
        rows = {row.allocator: row for row in result.rows}
        if second not in rows:
            continue
        row = rows[second]
        times.append(row.ratio.median)
        memories.append(rows[first].peak_rss_mib / row.peak_rss_mib)
        slower += row.verdict == 1
        table.add_row(result.title, _ratio(row, result, row.ratio),
                      f"{result.floor:.1%}" if result.floor is not None else "",
                      FASTER_SLOWER[row.verdict], f"{memories[-1]:.2f}x")
    if not times:
        console.print(f"[red]no case was measured under both {first} and {second}[/]")
        return False
    table.add_row(f"geometric mean of {len(times)}", f"{stats.geometric_mean(times):.3f}", "", "",
                  f"{stats.geometric_mean(memories):.2f}x", style="bold")
    console.print(table)
    return slower == 0
