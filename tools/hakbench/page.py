# SPDX-License-Identifier: MIT
"""A session as a web page, a picture, and a table for the README. What draws the page's curves is
5 MB: one file for all pages of a folder, without which a page has all but its curves."""
import os
import re
import shutil
from pathlib import Path

import jinja2
import markupsafe
from plotly.offline import get_plotlyjs

from . import command, plots, results, tables, units

DRAWS = "plotly.min.js"
MARKS = "<!-- hakbench: begin -->", "<!-- hakbench: end -->"
PERCENTILE = re.compile(r"^(?:(.*?)[ _.-]*)?(p[0-9]+(?:[._][0-9]+)?|max)$")
MEMORY_GROUP, MOST_MEMORY = "memory use", 6
# So many losses of each kind are shown at once; the rest, in time as in memory, are unfolded.
MOST_LOSSES = 12
TEMPLATES = Path(__file__).with_name("templates")
METHOD = markupsafe.Markup("""\
Runs are interleaved (A B C A B C) after one warm-up, each in a process of its own. A ratio is the
median of the ratios of runs made in the same round, with its 95 % bootstrap interval. The noise is
what one allocator, measured twice as two arms of the same rounds, differs by: inside it, or when
the interval holds 1, the verdict is <em>same</em>. Bars show the median and the 95 % interval of
the median. Outliers are runs more than two standard deviations from the mean; they are marked and
kept. <em>First run</em> is the time of the warm-up over the median of the others: what a cold start
costs. Memory is the resident memory of the largest process, its peak told by the kernel, its
average sampled. CPU is user and system time of all threads.""")


def publish(measured, path, folder, name, shared=None):
    """Writes NAME.html, NAME.svg, NAME.md and NAME.jsonl into a folder, and what draws curves into
    the folder `shared`, if not there; the page's place. One case alone has no means, and no picture
    of them."""
    folder.mkdir(parents=True, exist_ok=True)
    draws = (shared or folder) / DRAWS
    page = folder / f"{name}.html"
    text = html(measured, os.path.relpath(draws, folder))
    _write(page, text)
    if "<script src=" in text:
        draws.write_text(get_plotlyjs(), encoding="utf-8")
    if len(measured.results()) > 1:
        _write(folder / f"{name}.svg", picture(measured) + "\n")
    _write(folder / f"{name}.md", document(measured, name))
    target = folder / f"{name}.jsonl"
    if target.resolve() != path.resolve():
        shutil.copyfile(path, target)
    return page


def _write(path, text):
    """What a command line has that is no UTF-8 is written as \\udcff and the like."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def _render(template, **values):
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.get_template(template).render(**values).strip()


def picture(measured):
    """Time and memory over all cases, as one file."""
    overall, cases = measured.overall()

    def rows(which):
        most = max((getattr(one, which) for one in overall), default=1)
        return [{"allocator": one.allocator, "colour": plots.colour(one.allocator),
                 "length": round(270 * getattr(one, which) / most, 1),
                 "text": f"{getattr(one, which):.2f}"}
                for one in sorted(overall, key=lambda one: getattr(one, which))]
    return _render("picture.svg.j2", own=measured.reference, count=len(overall),
                   title=f"{measured.reference} beside other allocators, {len(cases)} cases",
                   time=rows("time"), memory=rows("memory"))


def document(measured, name):
    """The Markdown page: the README's table, all cases, where the reference is behind, the machine,
    the proofs."""
    found, shown = measured.results(), _shown(measured)
    lines = ["# Benchmarks", ""]
    if len(found) > 1:
        lines += [tables.readme(measured, f"{name}.svg")]
    lines += ["## Cases", "", "Medians of time and peak memory: of an operation, which "
              "docs/WORKLOADS.md defines, or of a whole program.", "",
              _line("Case", "Known as", "Command", "Noise", *shown),
              "|---|---|---|---:|" + "---:|" * len(shown)]
    for result in sorted(found, key=_rank):
        noise = f"{result.floor:.1%}" if result.floor is not None else ""
        lines.append(_line(result.title, result.known, _code(result.command), noise,
                           *(_cell(result, name) for name in shown)))
    for what, losses in zip(("time", "peak memory"), measured.losses(found)):
        lines += ["", f"## Where {measured.reference} is behind in {what}", ""]
        lines += [_plain(f"* {loss.result.title} ({loss.result.known or loss.result.name}): "
                         f"{loss.words}") for loss in losses] or ["Nowhere surely."]
    lines += ["", "## Machine", "", "| | |", "|---|---|"]
    lines += [_line(key, value) for key, value in _machine(measured)]
    lines += ["", "## Allocators that served", "", "| Program | Allocator | Proof |",
              "|---|---|---|"]
    lines += [_line(proof["workload"], proof["allocator"], proof["proof"])
              for proof in measured.proofs]
    lines += [_line(error["case"], error["allocator"], f"**not measured**: {error['message']}")
              for error in measured.errors]
    return "\n".join(lines) + "\n"


def _line(*cells):
    """A line of a table."""
    texts = (_plain(cell).replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(texts)} |"


def _plain(text):
    """A text in one line."""
    return str(text).replace("\n", "\\n").replace("\r", "\\r")


def _code(text):
    """A text as code, which holds any number of backticks."""
    marks = max(re.findall("`+", text), key=len, default="") + "`"
    space = " " if len(marks) > 1 else ""
    return f"{marks}{space}{text}{space}{marks}"


def _rank(result):
    """Programs first, in the order of their groups."""
    groups = results.PROGRAMS
    return groups.index(result.group) if result.group in groups else len(groups)


def _cell(result, allocator):
    row = result.row(allocator)
    if not row:
        return "error"
    return (f"{units.duration(result.shown_ns(row), result.unit())}, "
            f"{units.memory(row.peak_mib)}")


def write_readme(path, measured, picture_path):
    """Puts the table between the marks of the README; raises ValueError if it has none."""
    text = path.read_text(encoding="utf-8")
    begin, end = (text.find(mark) for mark in MARKS)
    if begin < 0 or end < begin:
        raise ValueError(f"{path.name} has no line {MARKS[0]} before a line {MARKS[1]}")
    path.write_text(text[:begin + len(MARKS[0])] + "\n" + tables.readme(measured, picture_path) +
                    text[end:], encoding="utf-8")


def _shown(measured):
    return [name for name in measured.versions if name != results.NOOP]


def _machine(measured):
    yield from ((key.replace("_", " "), value)
                for key, value in measured.header["environment"].items())
    yield "repeats", f"{measured.header['repeats']} after one warm-up, interleaved"
    if measured.header["quick"]:
        yield "length", "short runs (--quick): less certain"


def html(measured, draws=DRAWS):
    """The page, which has the path of what draws its curves."""
    found = measured.results()
    sections = list(_sections(measured, found))
    for section in sections:
        section["anchor"] = re.sub(r"\W+", "-", section["name"].lower()).strip("-")
    machine = measured.header["environment"]
    title = f"{measured.reference} beside other allocators"
    if len(found) == 1 and found[0].group == command.GROUP:
        title = found[0].title
    page = {
        "title": title, "quick": measured.header["quick"],
        "own": found[0].reference if len(found) == 1 else measured.reference,
        "where": " · ".join(str(value) for value in (
            machine.get("date"), machine.get("cpu"), f"{machine.get('processors')} processors",
            f"kernel {machine.get('kernel')}", f"commit {machine.get('commit')}")),
        "legend": [{"name": name, "version": measured.versions[name],
                    "colour": plots.colour(name)} for name in _shown(measured)],
        "sections": sections, "huge_pages": tables.HUGE_PAGES, "has_marks": True,
        "style": _asset("page.css"), "script": _asset("page.js"),
        "draws": draws if any(section.get("plots") or section.get("plot")
                              for section in sections) else ""}
    return _render("report.html.j2", page=page) + "\n"


def _asset(name):
    return markupsafe.Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def _script(text):
    return markupsafe.Markup(text.replace("</script", "<\\/script"))


def _sections(measured, found):
    """What the page holds, in its order."""
    groups = {}
    for result in found:
        groups.setdefault(result.group or "cases", []).append(result)
    first = [name for name in results.PROGRAMS if name in groups]
    if len(found) > 1 and (overall := _overall(measured, found)):
        yield overall
    yield from (_cards(measured, name, groups[name]) for name in first
                if name == command.GROUP)
    yield _losses(measured, found)
    yield from (_cards(measured, name, groups[name]) for name in first if name != command.GROUP)
    yield from (_cards(measured, name, members) for name, members in groups.items()
                if name not in first)
    for name, figures in (("Threads", _scaling(measured, found)),
                          ("Latency", _latency(measured, found)),
                          ("Memory over time", _memory(measured, found))):
        if figures:
            yield {"name": name, "kind": "plots", "plots": figures}
    yield {"name": "How it was measured", "kind": "method", "text": METHOD,
           "machine": list(_machine(measured)),
           "allocators": [(peer["name"], peer["version"], peer.get("origin", ""), " ".join(
               f"{name}={value}" for name, value in peer.get("environment", {}).items()))
               for peer in measured.header["allocators"]]}
    yield _served(measured, found)


def _overall(measured, found):
    overall, cases = measured.overall(found)
    if not overall:
        return None
    own = measured.reference
    most = [max(getattr(one, which) for one in overall) for which in ("time", "memory")]
    rows = [{"allocator": one.allocator, "colour": plots.colour(one.allocator),
             "hint": f"{one.allocator} {one.version}",
             "cells": [_value(value, value, value, most[place], f"{value:.2f}x")
                        for place, value in enumerate((one.time, one.memory))]}
            for one in overall]
    table = [(one.allocator, one.version, f"{one.time:.3f}", f"{one.memory:.3f}",
              f"{one.time * one.memory:.3f}", f"{one.first} of {len(cases)}",
              *((one.slower, one.same, one.faster) if one.allocator != own else ("", "", "")))
             for one in overall]
    missing = [name for name in _shown(measured) if name not in {o.allocator for o in overall}]
    return {"name": "Overall", "kind": "overall", "rows": rows, "table": table,
            "headings": ("Allocator", "Version", "Time", "Peak memory", "Time x memory",
                         "First in", f"{own} faster", "same", f"{own} slower"),
            "cases": [result.name for result in cases], "left_out": ", ".join(missing),
            "plot": {"title": "Time and memory", "known": "", "note": "best is at the lower left",
                     "json": _script(plots.points(
                         {one.allocator: (one.time, one.memory) for one in overall}, own,
                         f"time, {own} = 1", f"peak memory, {own} = 1"))}}


def _value(value, low, high, most, text, beside="", mark=None):
    """A bar: its length, its interval and a notch in hundredths of the longest, and its text."""
    part = 100 / most if most else 0
    return {"percent": round(value * part, 2), "low": round(low * part, 2),
            "spread": round((high - low) * part, 2), "text": text, "beside": beside,
            "mark": round(mark * part, 2) if mark is not None else None}


def _losses(measured, found):
    own = found[0].reference if len(found) == 1 else measured.reference
    section = {"name": f"Where {own} is behind", "kind": "losses",
               "failures": [line.removeprefix("* ") for line in tables.failures(measured)]}
    for what, losses in zip(("time", "memory"), measured.losses(found)):
        count = f": {len(losses)} of {len(found)} cases" if len(found) > 1 else ""
        section[what] = {"count": count,
                         "shown": [_loss(loss, what) for loss in losses[:MOST_LOSSES]],
                         "rest": [_loss(loss, what) for loss in losses[MOST_LOSSES:]]}
    return section


def _loss(loss, what):
    result, rows = loss.result, (loss.best, loss.result.row(loss.result.reference))

    def number(row):
        return result.shown_ns(row) if what == "time" else row.peak_mib
    most = max(map(number, rows))
    return {"name": result.name, "title": _heading(result), "known": result.known,
            "words": loss.words, "others": loss.others,
            "cells": [_value(number(row), 0, 0, most, units.duration(number(row), result.unit())
                              if what == "time" else units.memory(row.peak_mib)) |
                       {"allocator": row.allocator, "colour": plots.colour(row.allocator)}
                       for row in rows]}


def _heading(result):
    """The title of a case with a capital; a command line is left alone."""
    title = result.title
    return title if result.group == command.GROUP else title[:1].upper() + title[1:]


def _cards(measured, name, members):
    return {"name": name[:1].upper() + name[1:], "kind": "cards",
            "cards": [_card(measured, result, name == command.GROUP) for result in members]}


def _card(measured, result, is_open):
    shown = tables.columns(result)
    longest = max(result.shown_ns(row, "high") for row in result.rows)
    fattest = max(row.peak_mib for row in result.rows)
    return {"name": result.name, "title": _heading(result), "known": result.known,
            "is_open": is_open,
            "measure": result.measure, "note": tables.floor(result), "command": result.command,
            "rows": [_card_row(result, row, longest, fattest) for row in result.rows],
            "headings": [column.heading for column in shown],
            "table": [[column.cell(row) for column in shown] for row in result.rows],
            "errors": [error for error in measured.errors if error["case"] == result.name]}


def _card_row(result, row, longest, fattest):
    ns, own = result.shown_ns(row), result.row(result.reference)
    is_own = row.allocator == result.reference
    times = "" if is_own else "same" if row.verdict == 0 else units.times(1 / row.ratio.median)
    memory = "" if is_own else units.times(row.peak_mib / own.peak_mib)
    return {"allocator": row.allocator, "colour": plots.colour(row.allocator),
            "hint": f"{row.allocator} {row.version}, CV {row.time.cv:.1%}, average memory "
                    f"{units.memory(row.average_mib)}",
            "cells": [_value(ns, result.shown_ns(row, "low"), result.shown_ns(row, "high"),
                              longest, units.duration(ns, result.unit()), times),
                       _value(row.peak_mib, 0, 0, fattest, units.memory(row.peak_mib), memory,
                              row.average_mib)]}


def _plot(result, title, note, figure):
    return {"title": title, "known": result.known, "note": note, "json": _script(figure)}


def _scaling(measured, found):
    """A curve over threads for each workload that is run with several numbers of them."""
    members = {}
    for result in found:
        if result.curve:
            members.setdefault(result.curve, []).append(result)
    figures = []
    for group in members.values():
        group.sort(key=lambda result: result.threads)
        if len(group) < 2:
            continue
        series = {one: [(place, row.throughput.median) for place, row in enumerate(
            result.row(one) for result in group) if row] for one in _shown(measured)}
        figures.append(_plot(
            group[0], re.sub(r", \d+ (?:pairs? of )?threads?$", "", _heading(group[0])),
            "over threads, higher is better", plots.curves(
                {one: line for one, line in series.items() if line}, measured.reference,
                "threads", "M ops/s", x_ticks=[str(result.threads) for result in group])))
    return figures


def _percentiles(row):
    """{what: [(percentile's name, value)]} of a row's notes."""
    found = {}
    for name, (value, unit) in row.notes.items():
        match = PERCENTILE.match(name)
        # What the clock itself takes is a note of the latency workload.
        if match and value > 0 and match[1] != "clock":
            found.setdefault((match[1] or "", unit), []).append((_percent(match[2]), value))
    return found


def _percent(name):
    """p999 is 99.9 %."""
    digits = name[1:].replace("_", ".")
    return name if name == "max" or "." in digits or len(digits) < 3 else (
        f"p{digits[:2]}.{digits[2:]}")


def _latency(measured, found):
    figures = []
    for result in found:
        lines = {}
        for row in result.rows:
            for what, values in _percentiles(row).items():
                lines.setdefault(what, {})[row.allocator] = values
        for (what, unit), series in lines.items():
            names = [name for name, _ in next(iter(series.values()))]
            if len(names) < 3:
                continue
            series = {one: [(names.index(name), value) for name, value in values if name in names]
                      for one, values in series.items()}
            title = f"{_heading(result)}{', ' + what.replace('_', ' ') if what else ''}"
            figures.append(_plot(result, title, "lower is better", plots.curves(
                series, measured.reference, "percentile", unit or "ns", True, names)))
    return figures


def _memory(measured, found):
    figures = []
    chosen = [result for result in found if result.group == MEMORY_GROUP] or found[:MOST_MEMORY]
    for result in chosen:
        series = {row.allocator: row.rss for row in result.rows if len(row.rss) >= 10}
        if not series or max(row.peak_mib for row in result.rows) < 4:
            continue
        peak = units.memory(result.row(result.reference).peak_mib)
        figures.append(_plot(
            result, _heading(result),
            f"resident memory in the first round; {result.reference} peaks at {peak}",
            plots.curves(series, result.reference, "milliseconds", "MiB")))
    return figures


def _served(measured, found):
    return {"name": "Allocators that served", "kind": "served", "is_open": len(found) == 1,
            "errors": [(error["case"], error["allocator"], error["message"])
                       for error in measured.errors],
            "skips": [(skip["case"], skip["reason"]) for skip in measured.skips],
            "proofs": [(proof["workload"], proof["allocator"], proof["proof"])
                       for proof in measured.proofs]}
