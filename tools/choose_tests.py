# SPDX-License-Identifier: MIT
"""choose_tests.py SUBSTRING BUILD...: which configured builds have tests of that name, and what
must be built for them.

A line for each such build: its name, and the targets that its chosen tests run. Without targets
all is built: where one of them is a script, which may use anything, or where all tests are chosen
and PROGRAMS_AND does not say otherwise. Exit status 1: there is no such test. In names '_' and '.'
are the same: the test unit.base.list_test is made of the program unit_base_list_test.
"""
import os
import pathlib
import re
import sys

# An ordinary run of all tests needs no more of these builds than the programs that tests name, and
# these targets for scripts.
PROGRAMS_AND = {"debug": {"libhakmem.so", "tests/soak"}, "tiny": set()}
if "HAK_FULL" in os.environ:
    PROGRAMS_AND = {}
OUT = pathlib.Path(__file__).resolve().parent.parent / "out"


def tests(build):
    """Of each test of a build: its name, and the words of its command."""
    text = (OUT / build / "tests/CTestTestfile.cmake").read_text()
    for name, words in re.findall(r"^add_test\((?:\[=\[)?([^\s\]]+)(?:\]=\])? (.*)\)$", text, re.M):
        yield name, re.findall(r'"((?:[^"\\]|\\.)*)"', words)


def targets(build, words):
    """What of the build a command runs; None: it is a script."""
    if any(word.endswith((".sh", ".py")) for word in words) or "pytest" in words:
        return None
    inside = str(OUT / build) + "/"
    found = [part.removeprefix(inside) for word in words for part in word.split("=")
             if part.startswith(inside)]
    return found or None


def main():
    substring, *builds = sys.argv[1:]
    wanted = substring.replace(".", "_")
    is_chosen = False
    for build in builds:
        chosen = [targets(build, words) for name, words in tests(build)
                  if wanted in name.replace(".", "_")]
        if not chosen:
            continue
        is_chosen = True
        programs = {name for of in chosen for name in of or ()}
        if not substring and build in PROGRAMS_AND:
            print(build, *sorted(programs | PROGRAMS_AND[build]))
        else:
            needs_all = not substring or None in chosen
            print(build, *([] if needs_all else sorted(programs)))
    return 0 if is_chosen else 1


if __name__ == "__main__":
    sys.exit(main())
