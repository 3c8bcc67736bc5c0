#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kinds of misuse by their CWE number (tests/attack/matrix/weakness.cpp): hardened and fence mode
stop what docs/ATTACKS.md says, and no mode complains of the same programs without their misuse. If
this fails, a check misses what it stopped, or stops a program that is right."""
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import weaknesses

# What hardened mode never stops: reads, and a string's end behind its block. What it stops by
# chance: accesses farther away than a canary, and those before a block that the kernel refuses
# where a guard is, depend on the order of blocks; a single byte may be what a canary has there, but
# for its first byte; what a thread freed before it ended is verified when it is used again.
UNSTOPPED = {(122, "no_room_for_the_nul")}
BY_CHANCE = {(122, "far_index"), (122, "index_a_page_behind"), (122, "second_index"),
             (124, "far_index"), (124, "index_a_page_before"), (124, "by_the_kernel"),
             (124, "one_index"), (124, "second_index"), (124, "grown_by_realloc")}

# Percentages of the cases with blocks of 100 bytes. The rest of fence mode's cases read nothing of
# any block, or were refused by the kernel.
ALWAYS = {415: 100, 590: 100, 761: 100, 762: 100}
FLOORS = {"fence": {**ALWAYS, 416: 90, 122: 100, 124: 100, 126: 73, 127: 8},
          "fence, start": {**ALWAYS, 416: 90, 122: 100, 124: 92, 126: 20, 127: 91},
          weaknesses.EITHER: {**ALWAYS, 416: 90, 122: 100, 124: 100, 126: 73, 127: 91, None: 94}}
BYTES = 100


def check(what, is_true):
    """Says what is not so, and ends."""
    if not is_true:
        sys.exit(f"FAILED: {what}")


def check_right(program, name, variables):
    """All cases without their misuse: to the end, and nothing is said."""
    expected = weaknesses.run(program, [], {}).stdout
    for size in weaknesses.SIZES:
        ran = weaknesses.run(program, ["right", str(size)], variables)
        check(f"{name}, {size} bytes: {ran.returncode}, after {ran.stdout[-80:]}{ran.stderr}",
              (ran.returncode, ran.stdout, ran.stderr) == (0, expected, ""))


def is_certain(case):
    """Does hardened mode stop it whatever its random numbers are?"""
    kind, row, flow = int(case[0]), case[1], case[2]
    if kind == 416:
        return row.startswith("write") and flow != "in_a_thread"
    return kind not in (126, 127) and (kind, row) not in UNSTOPPED | BY_CHANCE


def check_certain(found):
    """Hardened mode stops all that it need not be lucky for."""
    certain = {case: outcome for case, outcome in found.items() if is_certain(case)}
    check(f"hakmem hardened: {len(certain)} of {len(found)} cases are certain",
          {int(case[0]) for case in certain} == {*weaknesses.KINDS} - {126, 127})
    check(f"hakmem hardened: all of {len(certain)} are stopped: "
          f"{[case for case, outcome in certain.items() if outcome != weaknesses.STOPPED]}",
          {*certain.values()} == {weaknesses.STOPPED})


def check_rates(name, found):
    """Each kind is stopped as often as it was when the floors were measured."""
    shares = weaknesses.shares(found)
    check(f"{name}: {shares}", set(shares) == {*weaknesses.KINDS, None})
    for kind, floor in FLOORS[name].items():
        stopped = shares[kind][1].get(weaknesses.STOPPED, 0)
        check(f"{name}, CWE {kind}: {stopped:.1f} % stopped, at least {floor} %: "
              f"{[case for case, outcome in found.items() if outcome != weaknesses.STOPPED]}",
              stopped >= floor)


def main():
    """All of it, on the library that was built."""
    if shutil.which("c++") is None:
        print("skipped: no C++ compiler")
        sys.exit(77)
    library = {"LD_PRELOAD": os.environ["PRELOAD_LIB"]}
    found = {}
    with tempfile.TemporaryDirectory() as work:
        program = weaknesses.build(work)
        for name, variables in weaknesses.MODES.items():
            check_right(program, name, {**library, **variables})
            if name != "hakmem":
                found[name] = weaknesses.outcomes(program, {**library, **variables}, [BYTES])
    check_certain(found.pop("hakmem hardened"))
    found[weaknesses.EITHER] = weaknesses.either(found["fence"], found["fence, start"])
    for name, outcomes in found.items():
        check_rates(name, outcomes)
    missed = [case for case, outcome in found[weaknesses.EITHER].items()
              if outcome == weaknesses.MISSED]
    check(f"fence mode misses {missed}", not missed)


main()
