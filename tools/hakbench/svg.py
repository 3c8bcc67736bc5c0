# SPDX-License-Identifier: MIT
"""Charts as SVG text: bars, lines, points. Their colours stand for allocators, always the same.

Inside a page the charts take their ink from its style sheet; a chart that is a file of its own
brings STYLE along.
"""
import math
from dataclasses import dataclass
from html import escape

COLOURS = {
    "hakmem": "#e8590c", "system": "#868e96", "mimalloc": "#1c7ed6", "mimalloc2": "#66b2f0",
    "snmalloc": "#0ca678", "jemalloc": "#9c36b5", "jemalloc530": "#cf83df", "tcmalloc": "#e0a800",
    "gperftools": "#8f7a1a", "rpmalloc": "#e64980", "scudo": "#a1735a", "noop": "#adb5bd",
}
SPARE_COLOURS = ("#c2255c", "#5f3dc4", "#2b8a3e", "#0b7285", "#d9480f", "#364fc7")
INK = """\
svg{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;font-size:12px}
svg text{fill:var(--ink)}svg .soft{fill:var(--soft)}svg .strong{font-weight:700}
svg .rule{stroke:var(--rule);stroke-width:1}svg .one{stroke:var(--soft);stroke-dasharray:3 3}
svg .whisker{stroke:var(--ink);stroke-width:1.2;opacity:.75}"""
STYLE = f"""<style>svg{{--ink:#1f2328;--soft:#656d76;--rule:#d8dee4}}
@media(prefers-color-scheme:dark){{svg{{--ink:#e6edf3;--soft:#9198a1;--rule:#3d444d}}}}
{INK}</style>"""
ROW, LABEL, RIGHT = 21, 92, 62
LETTER = 6.4


@dataclass(frozen=True)
class Bar:
    """A bar of a length, with the ends of its interval and what is written behind it."""
    allocator: str
    value: float
    low: float
    high: float
    text: str
    hint: str


@dataclass(frozen=True)
class Axis:
    """A scale from values to a stretch of pixels; ticks are (value, text)."""
    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple

    def place(self, value):
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, self.low / 10))
        return self.start + (value - low) / ((high - low) or 1) * (self.end - self.start)


def colour(allocator):
    """By name; variables of one allocator share its colour's family by a spare one."""
    if allocator in COLOURS:
        return COLOURS[allocator]
    return SPARE_COLOURS[sum(allocator.encode()) % len(SPARE_COLOURS)]


def short(value):
    """A tick's text."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):g}{unit}"
    return f"{value:.6g}"


def linear(high, start, end, low=0.0):
    """An axis from low to a round number that is not below high."""
    span = (high - low) or 1
    step = 10 ** math.floor(math.log10(span / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 5)
    count = math.ceil(span / step - 1e-9)
    ticks = tuple((low + step * i, short(low + step * i)) for i in range(count + 1))
    return Axis(low, low + step * count, start, end, False, ticks)


def logarithmic(low, high, start, end):
    """An axis over all values, ticks at 1, 2 and 5 of each decade, fewer over many decades."""
    low, high = low / 1.15, high * 1.15
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    wide = math.log10(high / low) > 2
    factors = (1,) if wide else (1, 1.5, 2, 3, 5, 7) if high / low < 8 else (1, 2, 5)
    values = [factor * 10.0 ** decade for decade in decades for factor in factors]
    return Axis(low, high, start, end, True,
                tuple((value, short(value)) for value in values if low <= value <= high))


def _frame(width, height, body, label, style=""):
    return (f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}" '
            f'xmlns="http://www.w3.org/2000/svg">{style}{"".join(body)}</svg>')


def _text(x, y, text, anchor="start", classes="", extra=""):
    named = f' class="{classes}"' if classes else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}{extra}>{escape(text)}'
            '</text>')


def _line(x1, y1, x2, y2, classes):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{classes}"/>'


def bars(rows, label, strong, width=440):
    """Horizontal bars, with the interval of each."""
    return _frame(width, ROW * len(rows) + 4, _bars(rows, strong, 0, 2, width), label)


def _bars(rows, strong, x, y, width):
    axis = linear(max(row.high for row in rows) or 1, x + LABEL, x + width - RIGHT)
    # The longest bar may use all the room: the scale ends with it, not with a round number.
    axis = Axis(0, max(row.high for row in rows) or 1, axis.start, axis.end, False, ())
    body = []
    for place, row in enumerate(rows):
        top = y + ROW * place
        end, middle = axis.place(row.value), top + ROW / 2
        weight = "strong" if row.allocator == strong else ""
        body.append(f'<g data-a="{escape(row.allocator)}"><title>{escape(row.hint)}</title>')
        body.append(_text(x + LABEL - 8, middle + 4, fitted(row.allocator), "end", weight))
        body.append(f'<rect x="{axis.start:.1f}" y="{top + 3:.1f}" height="{ROW - 7}" rx="2" '
                    f'width="{max(end - axis.start, 1):.1f}" fill="{colour(row.allocator)}"/>')
        if row.high > row.low:
            low, high = axis.place(row.low), axis.place(row.high)
            body.append(_line(low, middle - .5, high, middle - .5, "whisker"))
            for edge in (low, high):
                body.append(_line(edge, middle - 4, edge, middle + 3, "whisker"))
        body.append(_text(axis.place(max(row.high, row.value)) + 6, middle + 4, row.text, "start",
                          weight))
        body.append("</g>")
    return body


def fitted(name, letters=14):
    return name if len(name) <= letters else name[:letters - 1] + "…"


def panels(groups, strong, title, columns=2, width=880):
    """Several bar charts under one title as one picture, [(title, rows)]; a file of its own."""
    gap, head = 24, 34
    wide = (width - gap * (columns - 1)) / columns
    body, y = [_text(0, 16, title, classes="strong", extra=' style="font-size:15px"')], head
    for start in range(0, len(groups), columns):
        line = groups[start:start + columns]
        for place, (name, rows) in enumerate(line):
            x = place * (wide + gap)
            body.append(_text(x, y + 12, name, classes="soft"))
            body += _bars(rows, strong, x, y + 20, wide)
        y += 20 + ROW * max(len(rows) for _, rows in line) + 14
    return _frame(width, y, body, title, STYLE)


def _grid(xs, ys, x_title, y_title):
    body = []
    for value, text in ys.ticks:
        y = ys.place(value)
        body.append(_line(xs.start, y, xs.end, y, "rule"))
        body.append(_text(xs.start - 7, y + 4, text, "end", "soft"))
    for value, text in xs.ticks:
        x = xs.place(value)
        body.append(_line(x, ys.start, x, ys.start + 4, "rule"))
        body.append(_text(x, ys.start + 17, text, "middle", "soft"))
    body.append(_text((xs.start + xs.end) / 2, ys.start + 35, x_title, "middle", "soft"))
    body.append(_text(4, ys.end - 10, y_title, "start", "soft"))
    return body


def _spread(places, least=13.0):
    """Moves labels apart that would cover each other: {key: y}."""
    order = sorted(places, key=places.get)
    ys = [places[key] for key in order]
    for _ in range(60):
        for i in range(1, len(ys)):
            lack = least - (ys[i] - ys[i - 1])
            if lack > 0:
                ys[i - 1] -= lack / 2
                ys[i] += lack / 2
    return dict(zip(order, ys))


def lines(series, label, x_title, y_title, strong, y_log=False, x_ticks=None, width=560,
          height=300):
    """Lines with names at their ends: {allocator: [(x, y), ...]}."""
    points = [point for line in series.values() for point in line]
    end = width - 96
    if x_ticks:
        xs = Axis(x_ticks[0][0], x_ticks[-1][0], 56, end, False, tuple(x_ticks))
    else:
        xs = linear(max(x for x, _ in points), 56, end)
    values = [y for _, y in points]
    ys = (logarithmic(max(min(values), 1e-3), max(values), height - 44, 26) if y_log
          else linear(max(values), height - 44, 26))
    body = _grid(xs, ys, x_title, y_title)
    names = _spread({name: ys.place(line[-1][1]) for name, line in series.items()})
    for name in sorted(series, key=lambda name: name == strong):
        line = series[name]
        path = " ".join(f"{xs.place(x):.1f},{ys.place(y):.1f}" for x, y in line)
        wide = 3 if name == strong else 1.8
        body.append(f'<g data-a="{escape(name)}"><title>{escape(name)}</title>')
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour(name)}" '
                    f'stroke-width="{wide}" stroke-linejoin="round"/>')
        if len(line) <= 12:
            body += [f'<circle cx="{xs.place(x):.1f}" cy="{ys.place(y):.1f}" r="3.2" '
                     f'fill="{colour(name)}"><title>{escape(name)}: {y:.4g} at {x:g}</title>'
                     f'</circle>' for x, y in line]
        x = xs.place(line[-1][0])
        body.append(_line(x + 3, ys.place(line[-1][1]), end + 8, names[name], "rule"))
        body.append(_text(end + 11, names[name] + 4, fitted(name),
                          classes="strong" if name == strong else ""))
        body.append("</g>")
    return _frame(width, height, body, label)


def points(found, label, x_title, y_title, strong, width=560, height=380):
    """Named points {allocator: (x, y)} on logarithmic scales; 1 is drawn as two lines."""
    xs = logarithmic(min(x for x, _ in found.values()), max(x for x, _ in found.values()), 56,
                     width - 96)
    ys = logarithmic(min(y for _, y in found.values()), max(y for _, y in found.values()),
                     height - 44, 26)
    body = _grid(xs, ys, x_title, y_title)
    if xs.low < 1 < xs.high:
        body.append(_line(xs.place(1), ys.start, xs.place(1), ys.end, "one"))
    if ys.low < 1 < ys.high:
        body.append(_line(xs.start, ys.place(1), xs.end, ys.place(1), "one"))
    names = _names_apart({name: (xs.place(x), ys.place(y)) for name, (x, y) in found.items()})
    for name, (x, y) in found.items():
        body.append(f'<g data-a="{escape(name)}"><title>{escape(name)}: time {x:.3f}, memory '
                    f'{y:.3f}</title>')
        body.append(f'<circle cx="{xs.place(x):.1f}" cy="{ys.place(y):.1f}" '
                    f'r="{8 if name == strong else 6}" fill="{colour(name)}"/>')
        body.append(_text(xs.place(x) + 11, names[name] + 4, name,
                          classes="strong" if name == strong else ""))
        body.append("</g>")
    return _frame(width, height, body, label)


def _names_apart(places):
    """Heights of names beside points: only names that would overlap sideways are moved apart."""
    heights = {name: y for name, (_, y) in places.items()}
    reach = max(len(name) for name in places) * LETTER + 14
    for _ in range(80):
        for one, (x1, _) in places.items():
            for other, (x2, _) in places.items():
                near = heights[other] - heights[one]
                if one < other and abs(x1 - x2) < reach and abs(near) < 13:
                    push = (13 - abs(near)) / 4 * (1 if near >= 0 else -1)
                    heights[one] -= push
                    heights[other] += push
    return heights
