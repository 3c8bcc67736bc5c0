# SPDX-License-Identifier: MIT
"""./hak bench -- CMD ARGS: all allocators on a program of the user's.

Before anything is compared, the program is looked at and run as it is: what fails, cannot be
preloaded, or ends before it could be measured is told and has no number.
"""
import os
import re
import select
import shlex
import shutil
import stat
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from . import launcher, plan, programs, verify
from .peers import Peer
from .recipes import RECIPES

GROUP = "your program"
REPEATS, LEAST_REPEATS, PATIENCE_S = 7, 3, 600
# Below, most of the time is the loader's and the launcher's, and memory is sampled hardly ever.
LEAST_S = 0.01
TRIES = 5
INPUT_WAIT_S = 10
MOST_INPUT_MIB = 256
MOST_TITLE = 60
# Not the program's: what leads to this tool, and what would serve beside the allocator.
LEFT_OUT = ("HAK_FOLDER", "LD_PRELOAD")


class CommandError(Exception):
    """The program cannot be compared, and why."""


@dataclass(frozen=True)
class Trial:
    """A program that can be measured: its case, the allocators, and what to know of them."""
    case: plan.Case
    peers: list
    remarks: list


def place_of(options, folder, stdin):
    """The user's folder, environment and standard input."""
    environment = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    if "PWD" in environment:
        environment["PWD"] = str(folder)
    return launcher.Place(folder, environment, stdin, options.status, options.timeout)


def standard_input(console, spool):
    """The file that each run reads, with what this tool's standard input held; None if that is
    empty, a terminal, or says nothing for some seconds. CommandError if it goes on and on."""
    mode = os.fstat(0).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
        return None
    if not select.select([0], [], [], INPUT_WAIT_S)[0]:
        console.print(f"standard input said nothing for {INPUT_WAIT_S} s: the program gets none")
        return None
    path, left = spool / "stdin", (MOST_INPUT_MIB << 20) + 1
    with path.open("wb") as file:
        while left and (part := sys.stdin.buffer.read(min(left, 1 << 20))):
            left -= file.write(part)
    if not left:
        raise CommandError(f"standard input is longer than {MOST_INPUT_MIB} MiB; a file is read "
                           "where it is by -- sh -c 'CMD < FILE'")
    return path if path.stat().st_size else None


def case_of(words, place):
    """The case of a command line; raises CommandError if there is no such program, or none that
    a preloaded library can serve."""
    path = shutil.which(words[0] if "/" not in words[0] else str(place.folder / words[0]),
                        path=place.environment.get("PATH"))
    if not path:
        if (place.folder / words[0]).is_file():
            raise CommandError(f"{words[0]} is not executable, or not on PATH")
        line = f" (a line for the shell: -- sh -c {shlex.quote(words[0])})"
        raise CommandError(f"there is no program '{words[0]}'{line if ' ' in words[0] else ''}")
    obstacle = programs.obstacle(path)
    if obstacle:
        raise CommandError(f"{words[0]} {obstacle}, so all allocators would show the same")
    name, line = Path(words[0]).name, shlex.join(words)
    title = line if len(line) <= MOST_TITLE else line[:MOST_TITLE - 1] + "…"
    return plan.Case(name, GROUP, None, name, "", None, "", title, command=tuple(words),
                     place=place)


def try_out(root, case, peers):
    """Runs the program as it is, then asks whose malloc it calls. Returns the Trial."""
    system = next((peer for peer in peers if peer.library is None), None) or Peer(
        "system", "system allocator", os.confstr("CS_GNU_LIBC_VERSION"))
    try:
        done = launcher.run(root, case.words(), {}, place=case.place)
        # On a busy machine a short program seems longer than it is.
        again = [launcher.run(root, case.words(), {}, place=case.place)
                 for _ in range(TRIES if done.cost.wall_s < TRIES * LEAST_S else 0)]
        done = min([done, *again], key=lambda run: run.cost.wall_s)
    except launcher.RunError as error:
        raise CommandError(f"{case.name} fails as it is, with no allocator preloaded: {error}"
                           f"{_hint(case, str(error))}") from None
    time_s = done.cost.wall_s
    if time_s < LEAST_S:
        raise CommandError(f"{case.name} ends after {time_s * 1e3:.1f} ms: only its start could be "
                           f"measured; give it work of a second{_input_hint(case)}")
    case = replace(case, expected_s=time_s)
    remarks = [f"{case.name} leaves processes behind: they are ended after each run"] \
        if done.left else []
    try:
        verify.check(root, case, system)
        verify.check_run(system, done, case)
    except verify.WrongAllocator as error:
        if isinstance(error, verify.ForeignMalloc) and not error.is_its_own:
            return _with_own(case, peers, error.library, remarks)
        raise CommandError(f"{case.name}: {error}") from None
    return Trial(case, peers, remarks)


def _with_own(case, peers, library, remarks):
    """The program brings an allocator: it is measured with that as it is, and with libc's, which is
    preloaded to come before."""
    own = Peer("as it is", f"the program's own {library.name}", library.name, library,
               origin="the program's", is_preloaded=False)
    peers = [replace(peer, environment={"LD_PRELOAD": "libc.so.6"} | peer.environment)
             if peer.library is None else peer for peer in peers]
    return Trial(case, [*peers, own], [
        *remarks, f"{case.name} brings {library.name}: measured as it is, too; under system, libc "
        f"comes before it"])


def repeats_of(options, case, peers):
    """(repeats, remark or None): fewer for a long program."""
    if options.repeats:
        return options.repeats, None
    round_s = case.expected_s * (len(peers) + 1)
    repeats = min(max(int(PATIENCE_S / round_s) - 1, LEAST_REPEATS), REPEATS)
    if repeats == REPEATS:
        return REPEATS, None
    return repeats, (f"{repeats} runs of each: {REPEATS} would take "
                     f"{round_s * (REPEATS + 1) / 60:.0f} minutes (--repeats {REPEATS})")


def not_at_hand(peers):
    """A line that names the allocators that are neither built nor installed, or None."""
    missing = [name for name in RECIPES if name not in {peer.name for peer in peers}]
    return f"not built: {', '.join(missing)} (./hak bench --peers)" if missing else None


def _input_hint(case):
    return "" if case.place.stdin else "; its standard input was empty: < FILE gives it one"


def _hint(case, error):
    if error.startswith("still running"):
        return "; a program that ends is needed, or --timeout SECONDS"
    status = re.match(r"ended with status (\d+)", error)
    return _input_hint(case) + (f"; if that is success: --status {status[1]}" if status else "")
