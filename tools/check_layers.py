# SPDX-License-Identifier: MIT
"""src/ includes only what src/LAYERS allows; an include names its folder; none is circular."""
import fnmatch
import re

from checklib import ROOT, code, finish, text


def read_layers():
    """folder -> what it may include; headers for all; pattern of system headers -> folders."""
    may_include, ambient, system = {}, [], {}
    for line in text("src/LAYERS").splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, _, allowed = line.partition(":")
        if name == "ambient":
            ambient = allowed.split()
        elif name.startswith("<"):
            system[name.strip("<>")] = allowed.split()
        else:
            may_include[name] = allowed.split()
    return may_include, ambient, system


def includes(path):
    """(line number, '"' or '<', header) of each include."""
    for number, line in enumerate(text(path).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            yield number, match[1], match[2]


def cycles(graph):
    """Each circle of includes once, as a text."""
    found, done = [], set()

    def walk(header, trail):
        if header in trail:
            found.append("include cycle: " + " -> ".join([*trail[trail.index(header):], header]))
            return
        if header in done:
            return
        for inner in graph.get(header, ()):
            walk(inner, [*trail, header])
        done.add(header)

    for header in graph:
        walk(header, [])
    return found


def main():
    may_include, ambient, system = read_layers()
    problems, graph = [], {}
    files = code("src")
    for path in files:
        layer = path.parts[1]
        if layer not in may_include:
            problems.append(f"{path}: src/LAYERS has no line for {layer}")
            continue
        graph[str(path.relative_to("src"))] = inner = []
        for number, quote, header in includes(path):
            where = f"{path}:{number}: {header}"
            if quote == "<":
                for pattern, layers in system.items():
                    if fnmatch.fnmatch(header, pattern) and layer not in layers:
                        problems.append(f"{where} is for {' '.join(layers)} only")
                continue
            folder = header.split("/")[0]
            allowed = [layer, *may_include[layer], *ambient]
            if folder not in allowed and header not in allowed:
                problems.append(f"{where} is not open to {layer}")
            elif not any((ROOT / base / header).exists() for base in ("src", "include")):
                problems.append(f"{where} is not a path below src/ or include/")
            inner.append(header)
    finish("layers", f"{len(files)} files", problems + cycles(graph))


main()
