# SPDX-License-Identifier: MIT
"""What is counted rather than timed, in runs of its own: memory system calls and instructions."""
import re
import shutil
import tempfile
from pathlib import Path

from . import launcher, plan, verify

CALLS = ("mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "process_madvise")
# Columns of strace -c: share, seconds, microseconds a call, calls, errors if any, name.
CALL = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", re.M)
COLLECTED = re.compile(r"Collected : (\d+)")


class CannotCount(Exception):
    """The tool is missing, or the program does not run under it."""


def _tool(name):
    path = shutil.which(name)
    if not path:
        raise CannotCount(f"{name} is not installed")
    return path


def _call(root, words, variables, place):
    try:
        return launcher.run(root, words, variables, place=place)
    except (launcher.RunError, launcher.Skipped) as error:
        raise CannotCount(str(error)) from None


def calls(root, words, variables, place=launcher.Place()):
    """({name: count}, standard output) of a command and its children, by strace."""
    with tempfile.NamedTemporaryFile(prefix="hakbench-") as file:
        setting = [part for name, value in variables.items() for part in ("-E", f"{name}={value}")]
        done = _call(root, [_tool("strace"), "-f", "-c", "-o", file.name, "-e",
                            f"trace={','.join(CALLS)}", *setting, *words], {}, place)
        found = {name: int(count)
                 for count, name in CALL.findall(Path(file.name).read_text(encoding="utf-8"))
                 if name != "total"}
    return found, done.stdout


def instructions(root, words, variables, place=launcher.Place()):
    """(instructions, standard output) of a command, its start included, by callgrind."""
    done = _call(root, [_tool("valgrind"), "--tool=callgrind", "--callgrind-out-file=/dev/null",
                        *words], variables, place)
    collected = COLLECTED.search(done.stderr)
    if not collected:
        raise CannotCount("callgrind said nothing")
    return int(collected[1]), done.stdout


def _operations(case, output):
    """A program from elsewhere is one operation, whatever it says."""
    if case.command:
        return 1
    try:
        return plan.read_output(output).get("operations")
    except ValueError as error:
        raise CannotCount(str(error)) from None


def count_calls(root, case, peer):
    """{calls: {name: count}, operations} of the tiny run and its children."""
    found, output = calls(root, case.tiny_words(), verify.environment(case, peer), case.place)
    return {"calls": found, "operations": _operations(case, output)}


def count_instructions(root, case, peer):
    """{instructions, operations} of the tiny run."""
    if case.script:
        raise CannotCount("real programs are not run under callgrind")
    found, output = instructions(root, case.tiny_words(), verify.environment(case, peer),
                                 case.place)
    return {"instructions": found, "operations": _operations(case, output)}


COUNTERS = {"syscalls": count_calls, "instructions": count_instructions}
