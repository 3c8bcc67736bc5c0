#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes that show their numbers in /dev/shm remove what killed ones left there, and nothing
else. If this fails, /dev/shm fills up, or a running server is not seen any more."""
import os
import signal
import subprocess

import processes
from processes import PYTHON, STARTED, box_file, equal, shm_file

MADE = []


def start(shows):
    """A program on hakmem, once it runs."""
    process = processes.start([PYTHON, "-c", "print('ready', flush=True); input()"],
                              HAKMEM_STATS_SHM="1" if shows else "")
    equal("it shows its numbers", shm_file(process.pid).exists(), shows)
    return process


def stop(process):
    """Lets it end, well."""
    process.communicate("\n", timeout=300)
    equal("the program ends well", process.returncode, 0)
    equal("nothing is left of it", shm_file(process.pid).exists(), False)


def end_by(process, number):
    """Ends it by a signal, and waits."""
    os.kill(process.pid, number)
    equal("it ends", process.wait(300), -number)
    equal("it leaves its numbers", shm_file(process.pid).exists(), True)


def absent_pid():
    """A number that no process has."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def make(pid, content):
    """A file of that name."""
    shm_file(pid).write_bytes(content)
    MADE.append(shm_file(pid))


def field(number):
    """A number in the head of an shm file."""
    return number.to_bytes(8, "little")


def check_left():
    """What killed ones left goes, what others show stays."""
    running = start(True)
    left = [start(True), start(True)]
    end_by(left[0], signal.SIGKILL)
    end_by(left[1], signal.SIGTERM)
    stop(start(False))
    equal("a program that shows nothing removes nothing", shm_file(left[0].pid).exists(), True)
    following = start(True)
    for process in left:
        equal("what was left is removed", shm_file(process.pid).exists(), False)
    equal("what is shown stays", shm_file(running.pid).exists(), True)
    stop(following)
    stop(running)


def check_strange():
    """Files that only look as if they were left."""
    shown = start(True)
    good = shm_file(shown.pid).read_bytes()
    pid, silent = absent_pid(), start(False)
    elsewhere = good[:16] + field(pid) + field(1) + good[32:]
    reused = good[:16] + field(silent.pid) + good[24:32] + field(1) + good[40:]
    for what, number, content, stays in (
            ("a left one", pid, good[:16] + field(pid) + good[24:], False),
            ("one whose number another process has now", silent.pid, reused, False),
            ("one of another space of process ids that no process has open", pid, elsewhere, False),
            ("one of a process that is not its name", pid, good, True),
            ("a foreign file", pid, b"anything " * 2000, True),
            ("an empty file of an absent process", pid, b"", False),
            ("an empty file of a process", silent.pid, b"", True)):
        make(number, content)
        stop(start(True))
        equal(f"{what} stays", shm_file(number).exists(), stays)
        shm_file(number).unlink(missing_ok=True)
    make(pid, elsewhere)
    with open(shm_file(pid), "r+b"):
        stop(start(True))
        equal("one that a process there writes to stays", shm_file(pid).exists(), True)
    make(pid, good[:16] + field(pid) + good[24:])
    if os.geteuid() == 0:
        os.chown(shm_file(pid), 65534, 65534)
        stop(start(True))
        equal("another user's stays", shm_file(pid).exists(), True)
    shm_file(pid).unlink()
    shm_file(pid).symlink_to(shm_file(shown.pid))
    stop(start(True))
    equal("a link stays", shm_file(pid).is_symlink(), True)
    equal("and what it leads to", shm_file(shown.pid).exists(), True)
    shm_file(pid).unlink()
    stop(silent)
    stop(shown)


CHILDREN = 400
FORKS = f"""
import os
print("ready", flush=True)
input()
for i in range({CHILDREN}):
    child = os.fork()
    if child == 0:
        blocks = [bytearray(5000) for _ in range(300)]
        os._exit(0)
    print(child)
    os.waitpid(child, 0)
"""


def check_children():
    """Children that end without notice leave black boxes, but not without bound."""
    parent = processes.start([PYTHON, "-c", FORKS], HAKMEM_BLACKBOX="on",
                             HAKMEM_HEAP_PROFILE_RATE="16K")
    children = parent.communicate("\n", timeout=600)[0].split()
    equal("all were made", len(children), CHILDREN)
    left = [path for child in children if (path := box_file(child)).exists()]
    MADE.extend(left)
    processes.check("they leave some", len(left) >= 16)
    processes.check(f"most of {CHILDREN} are removed: {len(left)} are there",
                    len(left) < CHILDREN * 3 // 4)


try:
    check_left()
    check_children()
    check_strange()
    print("well")
finally:
    processes.end_all()
    for one in STARTED:
        shm_file(one.pid).unlink(missing_ok=True)
    for path in MADE:
        path.unlink(missing_ok=True)
