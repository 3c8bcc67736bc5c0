#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""HAKMEM_STATS=exact: what a program with threads counted itself is what the statistics say, to the
last request, in every form; without it these numbers are not there. If this fails, somebody tunes
a program after numbers that are not its own."""
import os
import pathlib
import re
import subprocess
import tempfile

from readers import equal, from_raw, read

OUT = pathlib.Path(os.environ["OUT"])


TOTALS = {f"exact_{name}" for name in ("requests", "requested_bytes", "reallocs", "realloc_bytes",
                                       "frees")}


def is_exact(name):
    """Is it one of the numbers that stats=exact adds?"""
    return name.startswith("exact_") or name.endswith(("_requests", "_reallocs"))


def read_beside_own_thread(folder, when):
    """One form: hakmem's own thread is at work between two of them."""
    return from_raw((folder / f"{when}.raw").read_text())


def run(*arguments, **settings):
    """What the program counted, and what two sets of statistics say."""
    reader = read_beside_own_thread if arguments else read
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ran = subprocess.run([OUT / "tests/preload_exact", folder, *arguments],
                             check=False, capture_output=True, text=True, timeout=300,
                             env={"LD_PRELOAD": os.environ["PRELOAD_LIB"],
                                  "HAKMEM_MAINTENANCE": "on" if arguments else "off", **settings})
        equal(f"the program ends well: {ran.stderr[:300]}", ran.returncode, 0)
        counted = {name: int(count) for name, count in map(str.split, ran.stdout.splitlines())}
        return counted, reader(folder, "before"), reader(folder, "after"), ran.stderr


def check_exact(*arguments, **settings):
    """To the last request."""
    counted, before, after, at_end = run(*arguments, HAKMEM_STATS="exact", **settings)
    if "HAKMEM_HARDEN" in settings: # a block's usable size does not tell its class there
        counted = {name: value for name, value in counted.items() if name in TOTALS}
    said = {name: value - before.get(name, 0) for name, value in after.items() if name in counted}
    equal(f"{settings}: counted and said", said, counted)
    for kind in ("requests", "reallocs"):
        of_classes = sum(value for name, value in after.items()
                         if name.startswith("class_") and name.endswith(f"_{kind}"))
        equal(f"{settings}: all {kind}, by size", of_classes + after[f"exact_large_{kind}"],
              after[f"exact_{kind}"])
    # In hardened mode bins hold ready blocks only: what is freed takes another way home.
    is_hardened = "HAKMEM_HARDEN" in settings
    equal(f"{settings}: bins", (after["magazines_grown"] > 0, after["flushes"] > 0),
          (is_hardened, not is_hardened))
    equal("at the end they are printed as text",
          re.search(r"^exact_requests +\d", at_end, re.M) is not None, True)
    return counted["exact_requests"]


def main():
    """With it, hardened and beside hakmem's own thread as well, and without."""
    count = check_exact()
    check_exact("own_thread")
    check_exact(HAKMEM_HARDEN="exact+random+quarantine+zero+canary")
    check_exact(HAKMEM_MODE="fast")
    _, _, after, _ = run()
    equal("without it", [name for name in after if is_exact(name)], [])
    equal("and the bins are used", after["magazines_grown"] > 0, True)
    print(f"{count} requests counted, none missed")


main()
