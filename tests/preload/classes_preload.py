#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hakmem classes` of a running process, and of what its run left: the blocks that a program holds
are found by their sizes, within what samples can say. If this fails, sizes are counted wrongly, or
are lost at the end of a run."""
import json
import pathlib
import sys
import tempfile

import processes
from processes import check, hakmem

WORK = pathlib.Path(tempfile.mkdtemp(prefix="classes."))
# Blocks of 1,010 bytes with what Python puts in front of their content.
HELD = 40000
PROGRAM = f"""
import sys
kept = [bytes(1010 - sys.getsizeof(b'')) for i in range({HELD})]
print('ready', flush=True)
sys.stdin.readline()
"""


def start(**settings):
    """The program, once it holds its blocks; PYTHONMALLOC has every block come from malloc,
    and what publishes its numbers answers asleep."""
    return processes.start([sys.executable, "-c", PROGRAM], PYTHONMALLOC="malloc",
                           HAKMEM_STATS_SHM=1,
                           **{f"HAKMEM_{name.upper()}": value for name, value in settings.items()})


def classes(source, *words, status=0):
    """What the command says."""
    return hakmem("classes", *words, source, status=status)


def size_class(said, block_bytes):
    """One of the classes of today."""
    found = [row for row in said["today"]["by_class"] if row["block_bytes"] == block_bytes]
    check(f"there are blocks of {block_bytes}: {said}", len(found) == 1)
    return found[0]


FILE = WORK / "learned"
for settings in {"learn": "big_cache+decay+sites"}, {"heap_profile": "on"}:
    FILE.unlink(missing_ok=True)
    process = start(profile=FILE, **settings)
    said = json.loads(classes(process.pid, "--json"))
    row = size_class(said, 1024)
    # They lived for a part of the time that was watched.
    check(f"{settings}: blocks of 1024: {row}", 0 < row["live_blocks"] < 1.5 * HELD)
    mean = row["requested_bytes"] / row["live_blocks"]
    check(f"{settings}: they asked for 1,010 bytes: {row}", 1000 < mean < 1020)
    check("as text", "the best table of at most 20 classes" in
          classes(process.pid, "--count", "20"))
    process.communicate("end\n", timeout=300)
    kept = json.loads(classes(FILE, "--json"))
    row = size_class(kept, 1024)
    check(f"{settings}: the file has them: {row}", 1000 < row["requested_bytes"] /
          row["live_blocks"] < 1020)
    check("a table saves what it says",
          kept["best"]["saved_bytes"] == kept["today"]["waste_bytes"] -
          kept["best"]["waste_bytes"] >= 0)

# Another run adds to it.
samples = kept["samples"]
process = start(profile=FILE, heap_profile="on")
process.communicate("end\n", timeout=300)
again = json.loads(classes(FILE, "--json"))
check(f"half of {samples} and more: {again['samples']}", again["samples"] > samples / 2 + 1)

# Where nothing is sampled, that is said, and nothing is written.
FILE.unlink()
process = start(profile=FILE)
said = classes(process.pid, status=1)
check(f"why: {said}", "nothing was sampled: start the program with learn=sites" in said)
process.communicate("end\n", timeout=300)
check("no sizes in the file", "\nsize" not in FILE.read_text())
print("ok")
