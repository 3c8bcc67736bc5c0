# SPDX-License-Identifier: MIT
"""The report's charts of curves and points, as what Plotly draws in the page, and the colours that
stand for allocators everywhere in it."""
import json

COLOURS = {
    "hakmem": "#e8590c", "system": "#868e96", "mimalloc": "#1c7ed6", "mimalloc2": "#66b2f0",
    "snmalloc": "#0ca678", "jemalloc": "#9c36b5", "jemalloc530": "#cf83df", "tcmalloc": "#e0a800",
    "gperftools": "#8f7a1a", "rpmalloc": "#e64980", "scudo": "#a1735a", "noop": "#adb5bd",
}
SPARE_COLOURS = ("#c2255c", "#5f3dc4", "#2b8a3e", "#0b7285", "#d9480f", "#364fc7")
FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,sans-serif'


def colour(allocator):
    """By name; one that has none gets a spare one, always the same."""
    if allocator in COLOURS:
        return COLOURS[allocator]
    return SPARE_COLOURS[sum(allocator.encode()) % len(SPARE_COLOURS)]


def curves(series, own, x_title, y_title, is_log=False, x_ticks=None):
    """Lines {allocator: [(x, y)]}; x_ticks are the names of x = 0, 1, 2 ..."""
    data = [{"type": "scatter", "name": name, "x": [x for x, _ in line], "y": [y for _, y in line],
             "mode": "lines+markers" if len(line) <= 12 else "lines",
             "line": {"color": colour(name), "width": 3.5 if name == own else 1.8},
             "hovertemplate": f"%{{y:.4g}} {y_title}<extra>{name}</extra>"}
            for name, line in sorted(series.items(), key=lambda item: item[0] == own)]
    layout = _layout(x_title, y_title)
    layout["yaxis"] |= {"type": "log"} if is_log else {"rangemode": "tozero"}
    if x_ticks:
        layout["xaxis"] |= {"tickvals": list(range(len(x_ticks))), "ticktext": x_ticks}
    return _figure(data, layout)


def points(found, own, x_title, y_title):
    """Points {allocator: (x, y)} on logarithmic scales, with lines where a value is 1."""
    order = sorted(found, key=found.get)
    data = [{"type": "scatter", "name": name, "x": [found[name][0]], "y": [found[name][1]],
             "mode": "markers+text", "text": [name], "cliponaxis": False,
             "textposition": ("top center", "bottom center")[place % 2],
             "marker": {"color": colour(name), "size": 17 if name == own else 12},
             "hovertemplate": f"{x_title} %{{x:.2f}}, {y_title} %{{y:.2f}}<extra>{name}</extra>"}
            for place, name in enumerate(order)]
    layout = _layout(x_title, y_title) | {"showlegend": False}
    for axis, place in (("xaxis", 0), ("yaxis", 1)):
        values = [value[place] for value in found.values()]
        low, high = min(values) / 1.3, max(values) * 1.3
        ticks = [tick for tick in (.1, .2, .3, .5, .7, 1, 1.5, 2, 3, 5, 7, 10, 20, 50)
                 if low <= tick <= high]
        layout[axis] |= {"type": "log", "tickvals": ticks, "ticktext": [f"{t:g}" for t in ticks]}
    dotted = {"type": "line", "line": {"dash": "dot", "width": 1, "color": "#868e96"}}
    layout["shapes"] = [dotted | {"x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1},
                        dotted | {"y0": 1, "y1": 1, "xref": "paper", "x0": 0, "x1": 1}]
    return _figure(data, layout)


def _layout(x_title, y_title):
    axis = {"automargin": True, "zeroline": False, "fixedrange": True}
    return {"font": {"size": 14, "family": FONT}, "hovermode": "closest",
            "margin": {"l": 8, "r": 16, "t": 30, "b": 8}, "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "legend": {"orientation": "h", "y": -0.24, "yanchor": "top", "x": 0},
            "xaxis": axis | {"title": {"text": x_title, "standoff": 4, "font": {"size": 14}}},
            "yaxis": dict(axis),
            "annotations": [{"text": y_title, "showarrow": False, "xref": "paper", "yref": "paper",
                             "x": 0, "y": 1, "yanchor": "bottom", "yshift": 6, "xanchor": "left"}]}


def _figure(data, layout):
    """JSON that can stand inside a page."""
    text = json.dumps({"data": data, "layout": layout}, separators=(",", ":"))
    return text.replace("<", "\\u003c")
