#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""learn=sites in a program of many libraries: a site is named by its file, the hundredth one's too;
one in no file is not kept for the next run. If this fails, rules of plug-ins are lost at the end of
each process, and the file fills with addresses that mean nothing."""
import atexit
import pathlib
import shutil
import sys
import tempfile

from processes import OUT, PYTHON, becomes, check, end_all, hakmem, start

WORK = pathlib.Path(tempfile.mkdtemp(prefix="places."))
FILE = WORK / "learned"
LIBRARIES = 100
BYTES = 2000

# Each library allocates for a while; the last one keeps some of its blocks.
PROGRAM = f"""
import ctypes, sys
taken = []
def work(library, count, keep):
    take, give = library.deep_take, library.deep_give
    take.restype, give.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    for i in range(count):
        block = take({BYTES}, 1)
        if i % 50 == 0 and keep:
            taken.append(block)
        else:
            give(block)
libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
for library in libraries:
    work(library, 1000, False)
print("ready", flush=True)
while sys.stdin.read(1):
    work(libraries[-1], 100000, True)
    print("worked", flush=True)
"""


def work(process):
    """Lets the last library allocate."""
    process.stdin.write("w")
    process.stdin.flush()
    return process.stdout.readline() == "worked\n"


atexit.register(shutil.rmtree, WORK)
atexit.register(end_all)
paths = [WORK / f"plugin{i}.so" for i in range(LIBRARIES)]
for path in paths:
    shutil.copy(OUT / "tests/libpreload_deep.so", path)
program = start([PYTHON, "-S", "-c", PROGRAM, *paths], HAKMEM_STATS_SHM=1,
                HAKMEM_LEARN="sites", HAKMEM_PROFILE=FILE)
becomes("the site has a name", lambda: work(program) and
        f"{paths[-1].name}+0x" in hakmem("rules", program.pid))
said = hakmem("rules", program.pid, "pin", "?+0x1234", 128)
check(f"a place in no file is pinned: {said}", "?+0x1234" in hakmem("rules", program.pid))
hakmem("rules", program.pid, "pin", "plugin7.so+0x1234", 128)
program.communicate("", timeout=300)
check("it ends well", program.returncode == 0)
lines = FILE.read_text()
check(f"what the user said of a file is kept: {lines}", "plugin7.so+0x1234" in lines)
check(f"what has no file is not: {lines}", "?+0x" not in lines)
print("well")
sys.exit(0)
