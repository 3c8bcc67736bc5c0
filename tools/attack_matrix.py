#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes docs/ATTACKS.md: which allocator stops which misuse of memory.

    attack_matrix.py [OUT]

Runs tests/attack/matrix/misuse.c, built here, under libhakmem.so of the build folder OUT
(out/release) in its default, in hardened and in fence mode, on the system's malloc, and under each
lib*.so of out/peers/*/ (./hak bench --peers makes them). What tools/weaknesses.py wrote stays.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import weaknesses

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {8: "8", 4096: "4 K", 262144: "256 K"}
LIMIT_S = 5
TEXT = """# Misuse, and which allocators stop it

Written by `tools/attack_matrix.py`. Each cell has three letters, for blocks of 8 bytes, 4 KiB and
256 KiB. **A**: the allocator ended the process, or, where that is all it can do, refused the
request or left nothing to find. **S**: the process ended by a fault, at a guard page or by chance.
**-**: the misuse succeeded and the program continued for 8000 allocations. **?**: the program hung.
hakmem's own tests (`tests/attack`) also check the message. In [fence mode](FENCE.md) the faults
are intended: each occurs at the instruction of the misuse.

"""


def peers():
    found = {"system": {}}
    for folder in sorted((ROOT / "out/peers").glob("*/")):
        libraries = sorted(folder.rglob("lib*.so*"))
        if libraries:
            found[folder.name] = {"LD_PRELOAD": str(libraries[0])}
    return found


def outcome(program, name, size, variables):
    environment = {"PATH": os.environ["PATH"], **variables}
    try:
        done = subprocess.run([program, name, str(size)], env=environment, capture_output=True,
                              timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return "?"
    if done.returncode in (-signal.SIGSEGV, -signal.SIGBUS):
        return "S"
    return "-" if done.returncode == 0 else "A"


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "out/release").resolve()
    if not (out / "libhakmem.so").exists():
        sys.exit(f"attack_matrix.py: no libhakmem.so in {out}")
    library = {"LD_PRELOAD": str(out / "libhakmem.so")}
    allocators = {"hakmem": library, "hakmem hardened": {**library, "HAKMEM_MODE": "hardened"},
                  "hakmem fence": {**library, "HAKMEM_MODE": "fence"}, **peers()}
    with tempfile.TemporaryDirectory() as work:
        program = str(pathlib.Path(work) / "misuse")
        subprocess.run(["cc", "-O1", "-w", "-fno-builtin", "-pthread", "-o", program,
                        str(ROOT / "tests/attack/matrix/misuse.c")], check=True)
        names = subprocess.run([program], text=True, capture_output=True,
                               check=True).stdout.split()
        rows = {name: {allocator: "".join(outcome(program, name, size, variables)
                                          for size in SIZES)
                       for allocator, variables in allocators.items()} for name in names}
    lines = ["| misuse | " + " | ".join(allocators) + " |", "| --- |" + " --- |" * len(allocators)]
    for name, cells in rows.items():
        lines.append(f"| {name.replace('_', ' ')} | " + " | ".join(cells.values()) + " |")
    stopped = [sum(1 for cells in rows.values() for one in cells[allocator] if one in "AS")
               for allocator in allocators]
    lines.append("| **not missed** | " + " | ".join(f"{count} of {len(rows) * len(SIZES)}"
                                                    for count in stopped) + " |")
    document = weaknesses.DOCUMENT
    _, mark, kept = document.read_text().partition(weaknesses.MARK)
    document.write_text(TEXT + "\n".join(lines) + "\n" + mark + kept)
    print(f"{document}: {len(rows)} misuses, {len(allocators)} allocators")


if __name__ == "__main__":
    main()
