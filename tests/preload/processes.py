# SPDX-License-Identifier: MIT
"""Programs on hakmem, and the command that looks at them, for the scripts here."""
import os
import pathlib
import re
import subprocess
import sys
import time

OUT = pathlib.Path(os.environ["OUT"])
HAKMEM = str(OUT / "hakmem")
LIBRARY = os.environ["PRELOAD_LIB"]
PYTHON = os.path.realpath(sys.executable)
STARTED = []
os.umask(0o022)  # hakmem reads no file that others may write


def fail(*words):
    """Says what is wrong, and ends."""
    sys.exit("FAILED: " + " ".join(map(str, words)))


def check(what, is_true):
    """Says what is not so, and ends."""
    if not is_true:
        fail(what)


def equal(what, left, right):
    """Says what differs, and ends."""
    if left != right:
        fail(f"{what}: {left!r} is not {right!r}")


def says(what, text, pattern):
    """The text has the words."""
    if not re.search(pattern, text):
        fail(f"{what}: {text!r} does not say {pattern!r}")


def becomes(what, is_so):
    """It comes true within two minutes."""
    deadline = time.monotonic() + 120
    while not is_so():
        if time.monotonic() > deadline:
            fail(what)
        time.sleep(0.01)


def start(words, how=None, **variables):
    """A program on hakmem with variables, those that are not empty; once it says that it is
    ready."""
    environment = {**os.environ, "LD_PRELOAD": LIBRARY,
                   **{name: str(value) for name, value in variables.items() if value}}
    process = subprocess.Popen(list(map(str, words)), env=environment, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, **(how or {}))
    STARTED.append(process)
    equal("the program starts", process.stdout.readline(), "ready\n")
    return process


def end_all():
    """Kills what was started and has not ended."""
    for process in STARTED:
        if process.poll() is None:
            process.kill()
            process.wait()


def hakmem(*arguments, status=0, **how):
    """Runs the command; what it says, or why it does not."""
    ran = subprocess.run([HAKMEM, *map(str, arguments)], capture_output=True, text=True,
                         timeout=300, check=False, **how)
    equal(f"the status of {arguments}: {ran.stdout}{ran.stderr}", ran.returncode, status)
    return ran.stdout if status == 0 else ran.stderr


def children(pid):
    """Those of the process's first thread."""
    return [int(child) for child in
            pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def shm_file(pid):
    """The file that a process publishes."""
    return pathlib.Path(f"/dev/shm/hakmem.{pid}")


def box_file(pid):
    """The black box of a process."""
    return pathlib.Path(f"/dev/shm/hakmem.profile.{pid}")
