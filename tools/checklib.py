# SPDX-License-Identifier: MIT
"""What tools/check_*.py share: the files of the tree, running a command, one line of verdict."""
import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "out/release"
CODE_FOLDERS = ("src", "include", "bench", "tests", "cli", "bounds")
CODE_SUFFIXES = (".c", ".h", ".cpp", ".hpp")


def tree():
    """Every file of the repository that is not a build product, relative to its root."""
    for folder, names, files in os.walk(ROOT):
        names[:] = sorted(name for name in names if name not in (".git", "out", "__pycache__"))
        for file in sorted(files):
            yield (Path(folder) / file).relative_to(ROOT)


def code(*folders):
    """C and C++ files under the given folders (all of them if none is given)."""
    wanted = folders or CODE_FOLDERS
    return [path for path in tree() if path.suffix in CODE_SUFFIXES and path.parts[0] in wanted]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def source_words():
    """Every word that stands in src/."""
    return {word for path in tree() if path.parts[0] == "src"
            for word in re.findall(r"\w+", text(path))}


def without_comments(source):
    """The source with comments and string literals blanked, line numbers kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0]) if match[0][0] == "/" else '""'
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, source, flags=re.S)


def comments(source):
    """(line, text) of each comment of C or C++."""
    token = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    for found in re.finditer(token, source, re.S):
        if found[0].startswith("/"):
            yield source.count("\n", 0, found.start()) + 1, found[0]


def run(*command):
    """Exit status and all output of a command run at the root."""
    done = subprocess.run([str(word) for word in command], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def side_by_side(function, items):
    """function(item) of every item, on all processors, in order."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))


def finish(what, looked_at, problems):
    """Prints the verdict of a check and ends the program."""
    print(f"{'FAILED' if problems else 'ok    '} {what:<8} {looked_at}", flush=True)
    for problem in problems:
        print(f"       {problem}")
    sys.exit(1 if problems else 0)
