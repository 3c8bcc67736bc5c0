# SPDX-License-Identifier: MIT
"""No text tells on which machine it was written, no code leaves a note to do it later, and what
users read has none of the phrases that were mended once."""
import re

from checklib import CODE_FOLDERS, CODE_SUFFIXES, ROOT, finish, text, tree

HOME = re.compile(r"/(?:home|Users)/[a-z]\w*|/[r]oot/")
LATER = re.compile(r"\b(?:TODO|FIXME|XXX)\b")
# What users read, but for what says how it once was.
READ = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/", "packaging/",
        "cli/", "include/")
HISTORY = ("docs/adr/", "docs/benchmarks/")
QUAINT = {
    r"\bat hand\b": "cached, or kept",
    r"\bon (?:the|their|its) way home\b": "not collected yet",
    r"\bhardly lives?\b": "short-lived",
    r"\bat the price of\b": "at the cost of, or which costs",
    r"\b[Ww]ho served\b": "which allocator served",
    r"\beach thread has a heap\b": "heaps are shared",
    r"\bnobody (?:set|asked|touched)\b": "a passive",
}


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
        if str(path).startswith(READ) and not str(path).startswith(HISTORY):
            for phrase, better in QUAINT.items():
                found = re.search(phrase, line)
                if found:
                    yield f"{path}:{number}: '{found[0]}': {better}"


def main():
    files = list(tree())
    finish("words", f"{len(files)} files", [problem for path in files for problem in check(path)])


main()
