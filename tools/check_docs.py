# SPDX-License-Identifier: MIT
"""What documents name exists: linked files, paths and functions in `code`, commands of ./hak; and
what comments of the code name: files. The generated documents are fresh."""
import re
import sys

from checklib import CODE_SUFFIXES, ROOT, comments, finish, run, text, tree

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
HAK = re.compile(r"\./hak ([a-z]+)")
# A path in backticks: it begins with a folder of the root and holds no placeholder or pattern.
PATH = re.compile(r"(?:\./)?("
                  r"(?:src|include|tools|tests|bench|cli|cmake|docs|packaging|\.ci)/[\w./+-]*)")
NAME = re.compile(r"\bhak_[a-z0-9_]+")
# A file that a comment names, with some of its folders or none; <bits/of/libc.h> and "made.h" are
# elsewhere, and so is what has a capital.
FILE = re.compile(r"(?<![\w./<\"*-])(?:[a-z0-9_.-]+/)*[a-z0-9_-]+\.(?:c|h|cpp|hpp|S|py|sh|pml)\b"
                  r"(?![/*(])")
# These say what was, with the names of then.
HISTORY = ("CHANGELOG.md", "docs/adr/")


def names():
    """Every name of hakmem's own that the code has."""
    return {name for path in tree() if path.suffix in (*CODE_SUFFIXES, ".S", ".py")
            for name in NAME.findall(text(path))}


def commands():
    """Words that ./hak's usage lists."""
    return set(re.findall(r"^\./hak ([a-z]+)", text("hak"), re.M)) | {"help"}


def check(path, known, functions):
    fenced = False
    for number, line in enumerate(text(path).splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        where = f"{path}:{number}:"
        for command in HAK.findall(line):
            if command not in known:
                yield f"{where} ./hak has no command {command}"
        if fenced:
            continue
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            target = target.split("#")[0]
            if target and "://" not in target and not target.startswith("mailto:") \
                    and not (ROOT / path.parent / target).exists():
                yield f"{where} link to {target}, which does not exist"
        for span in CODE.findall(line):
            named = PATH.fullmatch(span)
            if named and not (ROOT / named[1]).exists():
                yield f"{where} names {named[1]}, which does not exist"
            if not str(path).startswith(HISTORY):
                for name in set(NAME.findall(span)) - functions:
                    yield f"{where} names {name}, which the code has not"


def named_files(sources, files):
    """Comments that name a file which is nowhere in the tree. `folder/file.c` may leave out the
    folders before."""
    known = {"/".join(path.parts[start:]) for path in files for start in range(len(path.parts))}
    for path in sources:
        for number, comment in comments(text(path)):
            for found in FILE.finditer(comment):
                if found[0].removeprefix("./") not in known:
                    line = number + comment.count("\n", 0, found.start())
                    yield f"{path}:{line}: a comment names {found[0]}, which does not exist"


def main():
    files = list(tree())
    sources = [path for path in files if path.suffix in (*CODE_SUFFIXES, ".S")]
    documents = [path for path in files if path.suffix == ".md"]
    known, functions = commands(), names()
    problems = [problem for path in documents for problem in check(path, known, functions)]
    problems += named_files(sources, files)
    if (ROOT / "tools/gen_docs.py").exists():
        status, output = run(sys.executable, "tools/gen_docs.py", "--check")
        if status:
            problems.append(f"generated documents are stale: ./hak docs\n{output}")
    finish("docs", f"{len(documents)} documents, {len(sources)} sources", problems)


if __name__ == "__main__":
    main()
