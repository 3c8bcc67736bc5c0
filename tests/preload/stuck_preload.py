#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A standard error that is full and never read stops no program: what hakmem would say is lost,
and the program ends as it would have. If this fails, a stopped pager or a stuck collector of logs
hangs services inside malloc."""
import os
import pathlib
import signal
import subprocess
import sys

from readers import equal

OUT = pathlib.Path(os.environ["OUT"])
PIECE = b"x" * 4096
ENDS = "import sys; kept = [bytes(1000 * i) for i in range(100)]; sys.exit(7)"
# Without a word of its own.
REFUSED = "import os\ntry: bytearray(1 << 30)\nexcept MemoryError: os._exit(7)"


def full_pipe():
    """Both ends."""
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    for piece in (PIECE, b"x"):
        try:
            while True:
                os.write(ends[1], piece)
        except BlockingIOError:
            pass
    os.set_blocking(ends[1], True)
    return ends


def status(*command, **settings):
    """How it ends with such a standard error; a hang is one of the test."""
    ends = full_pipe()
    ran = subprocess.run(command, check=False, stderr=ends[1], stdout=subprocess.DEVNULL,
                         timeout=600, env={**os.environ, "LD_PRELOAD": os.environ["PRELOAD_LIB"],
                                           **settings})
    for end in ends:
        os.close(end)
    return ran.returncode


def main():
    """All that hakmem says, at its usual times."""
    for settings in ({"HAKMEM_STATS": "text"}, {"HAKMEM_HEAP_PROFILE": "leaks"},
                     {"HAKMEM_MODE": "research"}, {"HAKMEM_FOO": "1"}, {"HAKMEM_SHOW_CONF": "1"},
                     {"HAKMEM_STATS": "json", "HAKMEM_STATS_INTERVAL": "10ms"},
                     {"HAKMEM_STATS": "json", "HAKMEM_STATS_INTERVAL": "10ms",
                      "HAKMEM_MAINTENANCE": "off"}):
        equal(settings, status(sys.executable, "-S", "-c", ENDS, **settings), 7)
    equal("a limit", status(sys.executable, "-S", "-c", REFUSED, HAKMEM_LIMIT="80M"), 7)
    equal("a crash", status(OUT / "tests/preload_crash", "null", HAKMEM_CRASH_REPORT="1"),
          -signal.SIGSEGV)
    equal("misuse", status(OUT / "tests/preload_crash", "misuse"), -signal.SIGABRT)


if __name__ == "__main__":
    main()
