# SPDX-License-Identifier: MIT
"""No text tells on which machine it was written, and no code leaves a note to do it later."""
import re

from checklib import CODE_FOLDERS, CODE_SUFFIXES, ROOT, finish, text, tree

HOME = re.compile(r"/(?:home|Users)/[a-z]\w*|/[r]oot/")
LATER = re.compile(r"\b(?:TODO|FIXME|XXX)\b")


def check(path):
    try:
        lines = text(path).splitlines()
    except UnicodeDecodeError:
        return
    for number, line in enumerate(lines, 1):
        if HOME.search(line) or str(ROOT) in line:
            yield f"{path}:{number}: a path of one machine"
        if path.suffix in CODE_SUFFIXES and path.parts[0] in CODE_FOLDERS and LATER.search(line):
            yield f"{path}:{number}: {line.strip()}"


def main():
    files = list(tree())
    finish("words", f"{len(files)} files", [problem for path in files for problem in check(path)])


main()
