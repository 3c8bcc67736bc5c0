# SPDX-License-Identifier: MIT
"""A session as one web page that needs nothing else, a picture and a table for the README."""
import re
import shutil
from html import escape
from pathlib import Path

from . import results, svg, tables

MARKS = "<!-- hakbench: begin -->", "<!-- hakbench: end -->"
PERCENTILE = re.compile(r"^(?:(.*?)[ _.-]*)?(p[0-9]+(?:[._][0-9]+)?|max)$")
MEMORY_GROUP, MOST_MEMORY = "memory use", 6
STYLE = Path(__file__).with_name("page.css")
SCRIPT = Path(__file__).with_name("page.js")
METHOD = """\
Runs are interleaved (A B C A B C) after one warm-up, each in a process of its own. A ratio is the
median of the ratios of runs made in the same round, with its 95 % bootstrap interval. The noise is
what one allocator, measured twice as two arms of the same rounds, differs by: inside it, or when
the interval holds 1, the verdict is <em>same</em>. Bars show the median and the 95 % interval of
the median. Outliers are runs more than two standard deviations from the mean; they are marked and
kept. <em>First run</em> is the time of the warm-up over the median of the others: what a cold start
costs. Memory is the resident memory of the largest process, its peak told by the kernel, its
average sampled. CPU is user and system time of all threads for each operation."""


def publish(measured, path, folder, name):
    """Writes NAME.html, NAME.svg, NAME.md and NAME.jsonl into a folder; the page's place."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{name}.html"
    page.write_text(html(measured), encoding="utf-8")
    (folder / f"{name}.svg").write_text(picture(measured) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(document(measured, name), encoding="utf-8")
    target = folder / f"{name}.jsonl"
    if target.resolve() != path.resolve():
        shutil.copyfile(path, target)
    return page


def picture(measured):
    """Time and memory over all cases, as one file."""
    overall, cases = measured.overall()
    groups = [("time, geometric mean, hakmem = 1: shorter is better".replace(
        "hakmem", measured.reference), _mean_bars(overall, "time")),
              ("peak memory, geometric mean: shorter is better",
               _mean_bars(overall, "memory"))]
    return svg.panels([group for group in groups if group[1]], measured.reference,
                      f"{measured.reference} beside other allocators, {len(cases)} cases")


def document(measured, name):
    """The Markdown page: the README's table, the machine, the proofs."""
    lines = ["# Benchmarks", "", tables.readme(measured, f"{name}.svg"), "## Cases", "",
             "| Case | Command | Noise | " + " | ".join(_shown(measured)) + " |",
             "|---|---|---:|" + "---:|" * len(_shown(measured))]
    for result in measured.results():
        cells = [tables.number(row.throughput.median) if row else "error"
                 for row in map(result.row, _shown(measured))]
        noise = f"{result.floor:.1%}" if result.floor is not None else ""
        lines.append(f"| {result.title} | `{result.command}` | {noise} | {' | '.join(cells)} |")
    lines += ["", "Throughput in million operations a second, medians.", "", "## Machine", "",
              "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in _machine(measured)]
    lines += ["", "## Who served the runs", "", "| Program | Allocator | Proof |", "|---|---|---|"]
    lines += [f"| {proof['workload']} | {proof['allocator']} | {proof['proof']} |"
              for proof in measured.proofs]
    lines += [f"| {error['case']} | {error['allocator']} | **not measured**: {error['message']} |"
              for error in measured.errors]
    return "\n".join(lines) + "\n"


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


def _mean_bars(overall, which):
    ordered = sorted(overall, key=lambda one: getattr(one, which))
    return [svg.Bar(one.allocator, value, value, value, f"{value:.2f}",
                    f"{one.allocator} {one.version}: {value:.3f}")
            for one in ordered for value in [getattr(one, which)]]


def html(measured):
    """The page."""
    found = measured.results()
    groups = {}
    for result in found:
        groups.setdefault(result.group or "cases", []).append(result)
    extra = {"Threads": _scaling(measured, found), "Latency": _latency(measured, found),
             "Memory over time": _memory(measured, found)}
    sections = [("Overall", _overall(measured, found)),
                (f"Where {measured.reference} is not first", _not_first(measured, found))]
    sections += [item for item in extra.items() if item[1]]
    sections += [(_heading(name), _group(measured, members)) for name, members in groups.items()]
    sections += [("How it was measured", f"<p>{METHOD}</p>" + _environment(measured)),
                 ("Who served the runs", _proofs(measured))]
    links = "".join(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name, _ in sections)
    body = "".join(f'<section id="{_anchor(name)}"><h2>{escape(name)}</h2>{content}</section>'
                   for name, content in sections)
    machine = measured.header["environment"]
    where = " · ".join(str(value) for value in (
        machine.get("date"), machine.get("cpu"), f"{machine.get('processors')} processors",
        f"kernel {machine.get('kernel')}", f"commit {machine.get('commit')}"))
    style = STYLE.read_text(encoding="utf-8").replace("/* charts */", svg.INK)
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>'
            f'{escape(measured.reference)} beside other allocators</title><meta name="viewport" '
            f'content="width=device-width,initial-scale=1"><meta name="color-scheme" '
            f'content="light dark"><style>{style}</style></head><body><header><h1>'
            f'{escape(measured.reference)} beside other allocators</h1><p class="soft">'
            f'{escape(where)}</p>{_warning(measured)}<nav>{links}</nav>{_legend(measured)}'
            f'</header><main>{body}</main><script>{SCRIPT.read_text(encoding="utf-8")}</script>'
            f'</body></html>\n')


def _heading(text):
    return text[:1].upper() + text[1:]


def _anchor(text):
    return re.sub(r"\W+", "-", text.lower()).strip("-")


def _warning(measured):
    if not measured.header["quick"]:
        return ""
    return ('<p class="warning">Short runs (<code>--quick</code>): good to see that all is well, '
            'too short for claims.</p>')


def _legend(measured):
    """Buttons that leave one allocator in full colour."""
    buttons = "".join(
        f'<button data-pick="{escape(name)}" title="{escape(measured.versions[name])}">'
        f'<i style="background:{svg.colour(name)}"></i>{escape(name)}</button>'
        for name in _shown(measured))
    return f'<div class="legend">{buttons}</div>'


def _table(headings, rows, strong=None, left=1):
    """A table that a narrow screen can scroll sideways; its first column stays."""
    head = "".join(f'<th{"" if place < left else " class=n"}>{escape(heading)}</th>'
                   for place, heading in enumerate(headings))
    body = []
    for row in rows:
        cells = "".join(f'<{"th" if place == 0 else "td"}{"" if place < left else " class=n"}>'
                        f'{escape(str(cell))}</{"th" if place == 0 else "td"}>'
                        for place, cell in enumerate(row))
        chosen = ' class="own"' if row[0] == strong else ""
        body.append(f'<tr{chosen} data-a="{escape(str(row[0]))}">{cells}</tr>')
    return (f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}'
            f'</tbody></table></div>')


def _figure(chart, title, note=""):
    caption = f'<figcaption><b>{escape(title)}</b>{" " + escape(note) if note else ""}</figcaption>'
    return f"<figure>{caption}{chart}</figure>"


def _overall(measured, found):
    overall, cases = measured.overall(found)
    if not overall:
        return "<p>No allocator has a number in every case.</p>"
    own = measured.reference
    rows = [(one.allocator, one.version, f"{one.time:.3f}", f"{one.memory:.3f}",
             f"{one.time * one.memory:.3f}", f"{one.first} of {len(cases)}",
             *((one.slower, one.same, one.faster) if one.allocator != own else ("", "", "")))
            for one in overall]
    headings = ("Allocator", "Version", "Time", "Peak memory", "Time x memory", "First in",
                f"{own} faster", "same", f"{own} slower")
    charts = "".join((
        _figure(svg.bars(_mean_bars(overall, "time"), "time of each allocator", own),
                "Time", f"geometric mean, {own} = 1, shorter is better"),
        _figure(svg.bars(_mean_bars(overall, "memory"), "memory of each allocator", own),
                "Peak memory", f"geometric mean, {own} = 1, shorter is better"),
        _figure(svg.points({one.allocator: (one.time, one.memory) for one in overall},
                           "time and memory of each allocator", f"time, {own} = 1",
                           "peak memory", own),
                "Time and memory", "best is at the lower left")))
    missing = [name for name in _shown(measured) if name not in {o.allocator for o in overall}]
    left_out = (f"<p>Left out of the means, because a run of theirs was an error: "
                f"{escape(', '.join(missing))}.</p>" if missing else "")
    names = escape(", ".join(result.name for result in cases))
    return (f'<div class="charts">{charts}</div>{_table(headings, rows, own, 2)}{left_out}'
            f'<p class="soft">{tables.HUGE_PAGES}</p><details><summary>The means are over these '
            f'{len(cases)} cases, which all of them ran</summary><p>{names}</p></details>')


def _not_first(measured, found):
    sentences = tables.not_first(measured, found)
    own = measured.reference
    fatter = []
    for result in found:
        best = min(result.rows, key=lambda row: row.peak_mib)
        mine = result.row(own)
        noise = result.memory_floor or 0
        if mine.peak_mib / best.peak_mib > 1 + max(noise, 0.02):
            fatter.append((result.title, best.allocator, f"{best.peak_mib:.1f}",
                           f"{mine.peak_mib:.1f}", f"{mine.peak_mib / best.peak_mib:.2f}x"))
    text = ("<ul>" + "".join(f"<li>{escape(sentence)}.</li>" for sentence in sentences) + "</ul>"
            if sentences else "<p>In time: nowhere surely behind another allocator here.</p>")
    if fatter:
        heads = ("Case", "Least memory", "its peak MiB", f"{own} MiB", "ratio")
        text += (f"<details><summary>In peak memory: behind in {len(fatter)} of {len(found)} cases"
                 f"</summary>{_table(heads, fatter, left=2)}</details>")
    else:
        text += "<p>In peak memory: nowhere.</p>"
    return text


def _group(measured, members):
    return ('<div class="charts">' + "".join(_case(measured, result) for result in members) +
            "</div>")


def _case(measured, result):
    rows = [svg.Bar(row.allocator, row.throughput.median, row.throughput.low, row.throughput.high,
                    tables.number(row.throughput.median),
                    f"{row.allocator}: {row.throughput.median:.4g} M ops/s, 95 % "
                    f"{row.throughput.low:.4g} to {row.throughput.high:.4g}, CV {row.time.cv:.1%}, "
                    f"peak {row.peak_mib:.1f} MiB") for row in result.rows]
    shown = tables.columns(result)
    table = _table([column.heading for column in shown],
                   [[column.cell(row) for column in shown] for row in result.rows],
                   result.reference, 2)
    chart = svg.bars(rows, f"throughput, {result.title}", result.reference)
    return (f'<figure class="case" id="case-{escape(result.name)}"><figcaption><b>'
            f'{escape(result.title)}</b> M ops/s, {escape(tables.floor(result))}</figcaption>'
            f'{chart}<details><summary>figures</summary><p><code>{escape(result.command)}</code>'
            f'</p>{table}</details></figure>')


def _charts(figures):
    return f'<div class="charts">{"".join(figures)}</div>' if figures else ""


def _scaling(measured, found):
    curves = {}
    for result in found:
        if result.curve:
            curves.setdefault(result.curve, []).append(result)
    figures = []
    for name, members in curves.items():
        members.sort(key=lambda result: result.threads)
        if len(members) < 2:
            continue
        series = {one: [(place, row.throughput.median) for place, row in enumerate(
            result.row(one) for result in members) if row] for one in _shown(measured)}
        ticks = [(place, str(result.threads)) for place, result in enumerate(members)]
        figures.append(_figure(
            svg.lines({one: line for one, line in series.items() if line},
                      f"throughput of {name} over threads", "threads", "M ops/s",
                      measured.reference, x_ticks=ticks), name.replace("_", " "),
            "M ops/s over threads, longer is better"))
    return _charts(figures)


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
        curves = {}
        for row in result.rows:
            for what, values in _percentiles(row).items():
                curves.setdefault(what, {})[row.allocator] = values
        for (what, unit), lines in curves.items():
            names = [name for name, _ in next(iter(lines.values()))]
            if len(names) < 3:
                continue
            series = {one: [(names.index(name), value) for name, value in values if name in names]
                      for one, values in lines.items()}
            figures.append(_figure(
                svg.lines(series, f"latency, {result.title}", "percentile", unit or "ns",
                          measured.reference, y_log=True, x_ticks=list(enumerate(names))),
                f"{result.title}{', ' + what.replace('_', ' ') if what else ''}",
                "lower is better"))
    return _charts(figures)


def _memory(measured, found):
    figures = []
    chosen = [result for result in found if result.group == MEMORY_GROUP] or found[:MOST_MEMORY]
    for result in chosen:
        series = {row.allocator: row.rss for row in result.rows if len(row.rss) >= 10}
        own = result.row(measured.reference)
        if not series or max(row.peak_mib for row in result.rows) < 4:
            continue
        figures.append(_figure(
            svg.lines(series, f"memory over time, {result.title}", "milliseconds", "MiB",
                      measured.reference), result.title,
            f"resident memory in the first round; {measured.reference} peaks at "
            f"{own.peak_mib:.0f} MiB"))
    return _charts(figures) + (f'<p class="soft">{tables.HUGE_PAGES}</p>' if figures else "")


def _environment(measured):
    return _table(("", ""), [(key, value) for key, value in _machine(measured)], left=2) + _table(
        ("Allocator", "Version", "From", "Variables"),
        [(peer["name"], peer["version"], peer.get("origin", ""),
          " ".join(f"{k}={v}" for k, v in peer.get("environment", {}).items()))
         for peer in measured.header["allocators"]], left=4)


def _proofs(measured):
    text = ""
    if measured.errors:
        text += "<h3>Errors: no number</h3>" + _table(("Case", "Allocator", "What"), [
            (error["case"], error["allocator"], error["message"]) for error in measured.errors],
            left=3)
    if measured.skips:
        text += "<h3>Skipped</h3>" + _table(("Case", "Why"), [
            (skip["case"], skip["reason"]) for skip in measured.skips], left=2)
    proofs = _table(("Program", "Allocator", "Proof"), [
        (proof["workload"], proof["allocator"], proof["proof"]) for proof in measured.proofs],
        left=3)
    return (f"{text}<p>Besides, each run of more than a few milliseconds was seen with the library "
            f"mapped.</p><details><summary>{len(measured.proofs)} proofs</summary>{proofs}"
            f"</details>")
