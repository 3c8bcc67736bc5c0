# SPDX-License-Identifier: MIT
"""No files of src/ use each other in a circle; read from the objects' symbols."""
import re
import sys

from checklib import BUILD, finish, run

OBJECTS = ("hakmem_objects.dir", "hakmem_objects_shared.dir")
# Functions that a file calls by no name of hakmem's: it compares their addresses with the loader's.
COMPARED = {"api/replaced.c": re.compile(r"hak_(new|delete)(_array)?(_aligned)?")}


def symbols():
    """file -> (symbols that it defines, symbols that it uses)."""
    found = {}
    for folder in OBJECTS:
        for path in sorted((BUILD / "CMakeFiles" / folder / "src").rglob("*.o")):
            status, lines = run("nm", path)
            if status != 0:
                raise SystemExit(lines)
            name = re.sub(r".*/src/|\.o$", "", str(path))
            defined, used = found.setdefault(name, (set(), set()))
            for kind, symbol in re.findall(r"^[0-9a-f ]{16} (\w) (\S+)$", lines, re.M):
                (used if kind in "Uwv" else defined).add(symbol)
    return found


def graph_of(found):
    """file -> {file that it uses: the symbols that it uses of it}."""
    home = {symbol: name for name, (defined, _) in found.items()
            for symbol in defined if symbol.startswith("hak_")}
    graph = {name: {} for name in found}
    for name, (_, used) in found.items():
        for symbol in used:
            is_compared = name in COMPARED and COMPARED[name].fullmatch(symbol)
            if symbol in home and home[symbol] != name and not is_compared:
                graph[name].setdefault(home[symbol], set()).add(symbol)
    return graph


def circles(graph):
    """The strongly connected components of more than one file (Tarjan, 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(name):
        index[name] = low[name] = len(index)
        stack.append(name)
        for inner in graph[name]:
            if inner not in index:
                visit(inner)
            if inner in stack:
                low[name] = min(low[name], low[inner])
        if low[name] == index[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in graph:
        if name not in index:
            visit(name)
    return found


def main():
    sys.setrecursionlimit(10000)
    graph = graph_of(symbols())
    problems = [] if graph else [f"no objects below {BUILD}: run ./hak build"]
    for circle in circles(graph):
        problems.append(f"a circle of {len(circle)} files: " + " ".join(circle))
        for name in circle:
            for inner in sorted(set(graph[name]) & set(circle)):
                problems.append(f"  {name} -> {inner}: " + " ".join(sorted(graph[name][inner])))
    finish("links", f"{len(graph)} files", problems)


main()
