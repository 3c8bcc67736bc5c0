# SPDX-License-Identifier: MIT
"""Every header compiles alone and opens with its licence and one block that says what it is;
the tests and documents that the block names exist."""
import re

from checklib import ROOT, code, finish, run, side_by_side, text

DEFINES = ("HAK_INTERPOSE=1", "HAK_CHECK_LEVEL=2", "HAK_TINY=0", "HAK_SMALL_WINDOW=0")
CC = ("gcc", "-x", "c", "-std=gnu11")
CXX = ("g++", "-x", "c++", "-std=gnu++17")
OPENING = re.compile(r"/\* SPDX-License-Identifier: MIT \*/\n/\* (\S+) - \S.*?\*/", re.S)
NAMED = re.compile(r"\b(?:tests|docs|bench|tools)/[\w./-]*\w")


def check(path):
    problems = []
    short = path.relative_to(path.parts[0])
    opening = OPENING.match(text(path))
    if not opening or opening[1] not in (str(path), str(short)):
        problems.append(f"{path}: does not open with SPDX and `/* {short} - a sentence`")
    elif path.parts[0] == "src":
        problems += [f"{path}: names {name}, which does not exist"
                     for name in NAMED.findall(opening[0]) if not (ROOT / name).exists()]
    compiler = CXX if path.suffix == ".hpp" else CC
    status, output = run(*compiler, "-fsyntax-only", "-Wall", "-Wextra",
                         "-Isrc", "-Iinclude", *(f"-D{define}" for define in DEFINES), path)
    if status or output:
        problems.append(f"{path}: does not compile alone\n{output}")
    return problems


def main():
    headers = [path for path in code("src", "include") if path.suffix in (".h", ".hpp")]
    found = side_by_side(check, headers)
    finish("headers", f"{len(headers)} files", [problem for each in found for problem in each])


main()
