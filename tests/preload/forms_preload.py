#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The statistics as programs read them: every form is what its format demands, all of them say the
same, and what they say is what a program counted itself. If this fails, graphs show nothing, or
what is not."""
import os
import pathlib
import re
import subprocess
import tempfile

from readers import READERS, equal, read, shown

OUT = pathlib.Path(os.environ["OUT"])


def check_parts(numbers):
    """What is called a sum is one."""
    parts = ("live cached withheld homeward slab_free slab_warm slab_clean span_warm span_clean "
             "span_lost hole").split()
    equal("the window is the sum of its parts", sum(numbers[f"{name}_bytes"] for name in parts),
          numbers["window_committed_bytes"])
    small = {int(name.split("_")[1]): value for name, value in numbers.items()
             if name.startswith("class_") and name.endswith("_live_blocks")}
    equal("live blocks by size", sum(size * count for size, count in small.items()),
          numbers["small_live_bytes"])
    equal("live blocks", sum(small.values()), numbers["small_live_blocks"])
    equal("slabs by size", sum(value for name, value in numbers.items()
                               if name.startswith("class_") and name.endswith("_slabs")),
          numbers["slabs"])


def main():
    """Runs the program, reads what it left."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # Guarded blocks, a sample, lie outside the window and are of no class.
        ran = subprocess.run([OUT / "tests/preload_forms", folder], check=False,
                             capture_output=True, text=True, timeout=300,
                             env={"LD_PRELOAD": os.environ["PRELOAD_LIB"],
                                  "HAKMEM_GUARD_RATE": "0"})
        equal(f"the program ends well: {ran.stderr}", ran.returncode, 0)
        before, after = read(folder, "before"), read(folder, "after")
        text = shown(folder, "after")
    check_parts(before)
    check_parts(after)
    lines = [line.split() for line in ran.stdout.splitlines()]
    for name, count in (line for line in lines if not line[0].isdigit()):
        equal(name, after[name] - before[name], int(count))
    counted = {int(size): int(count) for size, count in lines if size.isdigit()}
    for size, count in counted.items():
        if size > 128 << 10:
            equal("large blocks", after["large_live_blocks"] - before["large_live_blocks"], count)
            continue
        row = f"class_{size}_live_blocks"
        equal(f"live blocks of {size}", after.get(row, 0) - before.get(row, 0), count)
    rows = dict(line.split()[:2] for line in text if re.match(r" *\d+ +\d+ +\d+ ", line))
    equal("the slabs of each size", {int(size): int(slabs) for size, slabs in rows.items()},
          {int(name.split("_")[1]): value for name, value in after.items()
           if re.match(r"class_\d+_slabs", name) and value})
    small = sum(size * count for size, count in counted.items() if size <= 128 << 10)
    equal("small live bytes", after["small_live_bytes"] - before["small_live_bytes"], small)
    equal("large blocks taken", after["spans_taken"] - before["spans_taken"], 3)
    equal("large blocks given", after["spans_given"] - before["spans_given"], 2)
    print(f"{len(after)} numbers in {len(READERS)} forms agree")


main()
