#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes of one number in two PID namespaces that share /dev/shm: the first one's statistics
and black box stay while it lives, and the second one says that it has none. If this fails, a
container that starts beside another one makes a running server invisible."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import processes
from processes import (LIBRARY, PYTHON, becomes, box_file, children, equal, hakmem, says,
                       shm_file)


SHOWN, BOX = shm_file(1), box_file(1)
LAST = pathlib.Path(f"{BOX}.last")
VARIABLES = {"LD_PRELOAD": LIBRARY, "HAKMEM_STATS_SHM": "1", "HAKMEM_BLACKBOX": "on"}
# It allocates until it is told to end: what is shown is made by and by.
WORKS = """
import select, sys
print('ready', flush=True)
while not select.select([sys.stdin], [], [], 0.001)[0]:
    blocks = [bytes(1000 + i) for i in range(1000)]
"""
# A program that has files, with a child that maps them and ends with it, becomes the other one; its
# last argument tells which they were.
AGAIN = """
import os, sys
ours, theirs = os.pipe()
names = [f'/dev/shm/hakmem.{os.getpid()}', f'/dev/shm/hakmem.profile.{os.getpid()}']
while not all(map(os.path.exists, names)):
    blocks = [bytes(1000 + i) for i in range(1000)]
os.set_inheritable(theirs, True)
if os.fork() == 0:
    os.close(theirs)
    os.read(ours, 1)
    os._exit(0)
inodes = [str(os.stat(name).st_ino) for name in names]
os.execv(sys.executable, [sys.executable, '-c', sys.argv[1], *inodes])
"""


def inode(path):
    """Of the file of that name; None: there is none."""
    return path.stat().st_ino if path.exists() else None


def files():
    """What stands under the names."""
    return inode(SHOWN), inode(BOX), inode(LAST)


class Beside:
    """A program that is process 1, in a PID namespace of its own."""

    def __init__(self):
        self.said = tempfile.TemporaryFile("w+")
        words = ["env", *(f"{name}={value}" for name, value in VARIABLES.items()), PYTHON, "-c",
                 WORKS]
        self.outer = processes.start(["unshare", "--pid", "--fork", "--kill-child", *words],
                                     how={"stderr": self.said})
        self.pid = children(self.outer.pid)[0]

    def lines(self):
        """What it has said on standard error."""
        self.said.seek(0)
        return self.said.read()

    def end(self):
        """Lets it end, well."""
        self.outer.communicate("\n", timeout=300)
        equal("it ends well", self.outer.returncode, 0)

    def kill(self):
        """Leaves what it has in /dev/shm."""
        os.kill(self.pid, signal.SIGKILL)
        self.outer.wait(300)


def check_beside():
    """Two live ones, in the order in which they start; then one that follows a killed one."""
    first = Beside()
    becomes("it has both files", lambda: None not in files()[:2])
    before = files()
    second = Beside()
    for path in (SHOWN, BOX):
        becomes(f"the second one says that {path} is taken", lambda: second.lines().count(
            f"hakmem: a process of another PID namespace publishes in {path}: this one does not\n")
            == 1)
    equal("the files are those of the first one", files(), before)
    equal("it is shown", json.loads(hakmem("top", first.pid, "--json"))["pid"], 1)
    says("why the second one is not", hakmem("top", second.pid, "--once", status=1),
         f"{SHOWN} is of a process of another PID namespace: process {second.pid} does not")
    second.end()
    equal("they outlive the second one", files(), before)
    equal("the second one says no more", second.lines().count("\n"), 2)
    first.kill()
    equal("a killed one leaves them", files(), before)
    third = Beside()
    becomes("its black box is set aside", lambda: inode(LAST) == before[1])
    becomes("the third one has both files", lambda: None not in files()[:2])
    equal("the third one says nothing", third.lines(), "")
    hakmem("top", third.pid, "--once")
    third.end()
    equal("only the black box that was left stays", files(), (None, None, before[1]))


def check_again():
    """A program that replaces itself has its files again, though a child maps those before."""
    program = processes.start([PYTHON, "-c", AGAIN, WORKS], HAKMEM_STATS_SHM="1",
                              HAKMEM_BLACKBOX="on")

    before = pathlib.Path(f"/proc/{program.pid}/cmdline").read_text().split("\0")[3:5]
    for path, earlier in zip((shm_file(program.pid), box_file(program.pid)), before):
        becomes(f"it has a new {path}", lambda: inode(path) not in (None, int(earlier)))
    hakmem("top", program.pid, "--once")
    program.communicate("\n", timeout=300)
    equal("it ends well", program.returncode, 0)
    equal("nothing is left", inode(shm_file(program.pid)), None)
    equal("nothing is left of its black box", inode(box_file(program.pid)), None)


if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True,
                  check=False).returncode != 0:
    print("no PID namespaces may be made here")
    sys.exit(77)
try:
    for one in (SHOWN, BOX, LAST):
        one.unlink(missing_ok=True)
    check_beside()
    check_again()
    print("well")
finally:
    processes.end_all()
    for one in (SHOWN, BOX, LAST):
        one.unlink(missing_ok=True)
