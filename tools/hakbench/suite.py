# SPDX-License-Identifier: MIT
"""The public suite mimalloc-bench, from a copy of it that is given and built.

Its bench.sh says which programs there are, with which arguments, and what of their output it takes
for the time where a program runs for a fixed time. Only its assignments and the function with the
command lines are evaluated, by bash; nothing of it is run, built or changed.
"""
import fnmatch
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import launcher, plan

NAME = "mimalloc-bench"
# What the script does around these programs (a server, a clean build) is not done here.
UNSUPPORTED = {"redis*": "needs a server around it (./hak bench --only redis has one)",
               "lean*": "needs a clean build before each run", "mathlib": "needs a clean build "
               "before each run", "lua": "needs a clean build before each run",
               "spec*": "SPEC is not part of the suite", "security": "is no benchmark"}
TITLES = {
    "alloc-test*": "sizes of a Pareto distribution", "barnes": "gravity among many bodies",
    "cache-scratch*": "false sharing of blocks handed over", "cache-thrash*": "false sharing of "
    "a thread's own blocks", "cfrac": "factors of a large number, small blocks",
    "espresso": "a minimizer of logic arrays", "glibc-simple": "glibc's benchmark, 1 thread",
    "glibc-thread": "glibc's benchmark, many threads", "gs": "Ghostscript on a large document",
    "larsonN-sized": "a server whose threads inherit blocks, sized delete",
    "larson*": "a server whose threads inherit blocks", "malloc-large*": "blocks of some MiB",
    "mleak*": "threads that end and leave nothing", "mstress*": "a server in phases, blocks "
    "that change threads", "rbstress*": "a Ruby script of allocations", "rocksdb": "a key-value "
    "store", "rptest*": "rpmalloc's benchmark", "sh6bench*": "blocks freed in two orders",
    "sh8bench*": "blocks freed in two orders by other threads", "xmalloc-test*": "threads that "
    "only allocate, threads that only free", "z3": "a theorem prover",
}
ASSIGNMENT = re.compile(r"^(?:readonly )?(?:tests_all\w*|version_\w+|\w*dir|pdfdoc|procs\w+|"
                        r"spec_\w+)=(?:(?!`|\$\((?!\()).)*$", re.M)
COMMANDS = re.compile(r"^function run_test \{.*?^\}", re.M | re.S)
INPUT = re.compile(r'^\s*([\w*-]+)\)\s*infile="([^"]+)"', re.M)
FIXED_UP = re.compile(r"# fixup.*?\n(.*?)^\s*esac", re.M | re.S)
BRANCH = re.compile(r"^\s*([\w|*-]+)\)\n(.*?);;", re.M | re.S)
SED, OVER = re.compile(r"sed -n '([^']+)'"), re.compile(r"\((\d+) / \$ops\)")
ASK = """
curdir=$PWD benchdir=$(cd ../../bench && pwd) localdevdir=$(cd ../../extern 2>/dev/null && pwd)
procs=$(nproc)
{assignments}
pushd() {{ builtin pushd "$1" >/dev/null 2>&1 || builtin pushd . >/dev/null; }}
popd() {{ builtin popd >/dev/null; }}
warning() {{ :; }}
run_test_cmd() {{ printf '%s\\t%s\\t%s\\n' "$1" "$PWD" "$2"; }}
{commands}
for test in $tests_all; do run_test "$test"; done
"""


class SuiteError(Exception):
    """The folder is no copy of the suite that can be read."""


@dataclass(frozen=True)
class Figure:
    """What the script takes for the time: what sed finds in the output, or `over` divided by it."""
    sed: str
    over: float | None

    def read(self, stdout):
        """The result; ValueError if the output does not say it."""
        found = subprocess.run(["sed", "-n", self.sed], input=stdout, capture_output=True,
                               text=True, check=False).stdout.split()
        try:
            number = float(found[-1])
            time_s = self.over / number if self.over else number
        except (IndexError, ValueError, ZeroDivisionError):
            raise ValueError("the output does not say what mimalloc-bench takes for the "
                             f"time: {self.sed}") from None
        if time_s <= 0:
            raise ValueError("the output says that it took no time")
        return plan.whole_run(time_s)


def discover(folder):
    """(cases, [(name, why it cannot be measured)]) of a copy of the suite."""
    script = folder / "bench.sh"
    if not script.exists():
        raise SuiteError(f"{folder} is no copy of {NAME}: it has no bench.sh")
    if not (folder / "out/bench").is_dir():
        raise SuiteError(f"{folder} is not built: it has no out/bench (build-bench-env.sh bench)")
    text = script.read_text(encoding="utf-8", errors="replace")
    inputs = [(name, folder / path.replace("$benchdir", "bench"))
              for name, path in INPUT.findall(text)]
    figures = list(_figures(text))
    cases, missing = [], []
    for name, where, line in _command_lines(folder, text):
        words = shlex.split(line)
        place = launcher.Place(folder=Path(where), stdin=_match(inputs, name))
        reason = _match(UNSUPPORTED.items(), name) or _absent(words, place)
        if reason:
            missing.append((name, reason))
        else:
            cases.append(plan.Case(name, NAME, None, name, "", None, "", known=name,
                                   title=_match(TITLES.items(), name) or name, place=place,
                                   command=tuple(words), measured=_match(figures, name)))
    return cases, missing


def _command_lines(folder, text):
    commands = COMMANDS.search(text)
    if not commands:
        raise SuiteError("its bench.sh has no function run_test: another version of the suite")
    script = ASK.format(assignments="\n".join(found[0] for found in ASSIGNMENT.finditer(text)),
                        commands=commands[0])
    asked = subprocess.run(["bash", "-c", script], cwd=folder / "out/bench", text=True, check=False,
                           capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
                           env=launcher.clean_environment())
    lines = [tuple(line.split("\t")) for line in asked.stdout.splitlines() if line.count("\t") == 2]
    if not lines:
        raise SuiteError(f"its bench.sh names no program: {asked.stderr.strip()[-200:]}")
    return list(dict.fromkeys(lines))


def _figures(text):
    """(pattern of names, Figure) of the programs whose output says the time."""
    fixed_up = FIXED_UP.search(text)
    for names, body in BRANCH.findall(fixed_up[1] if fixed_up else ""):
        sed, over = SED.search(body), OVER.search(body)
        for name in names.split("|") if sed else ():
            yield name, Figure(sed[1], float(over[1]) if over else None)


def _match(table, name):
    """The value of the first pattern that fits the name, or None."""
    return next((value for pattern, value in table if fnmatch.fnmatchcase(name, pattern)), None)


def _absent(words, place):
    """Why the program cannot be run, or None."""
    program = words[0] if words else ""
    path = place.folder / program if "/" in program else shutil.which(
        program, path=launcher.clean_environment()["PATH"])
    if not path or not os.access(path, os.X_OK):
        return f"{program} is not there"
    if place.stdin and not place.stdin.exists():
        return f"its input {place.stdin.name} is not there"
    return None
