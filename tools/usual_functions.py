# SPDX-License-Identifier: MIT
"""Writes cmake/usual_functions.txt: the functions of out/release/libhakmem.so that ordinary
programs call, those of most programs first. gdb stops at each function's first call."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from checklib import BUILD, ROOT, source_words

if "gdb" in sys.modules:  # gdb reads this file, too: see record()
    import gdb

LIBRARY = BUILD / "libhakmem.so"
LIST = ROOT / "cmake/usual_functions.txt"
PROGRAMS = r"""
true
out/release/start_up_system 2 100
out/release/bench_random_mixed_system 100000 4096 42
out/release/transactions_system 2 20000 100 64 42
out/release/larson_system 1 8 1024 1000 100 12345 4
out/release/bench_mid_large_mt_system 2 50000 512 8192 32768 42
out/release/thread_churn_system 400 4 400 16 2048 42
out/release/realloc_growth_system 16 16777216 1 60000 42
out/release/calloc_large_system 20 67108864 1
out/release/touch_free_system 262144 3000 0 1 2
out/release/phase_server_system 20 10000 1 42
out/release/replay_system bench/traces/git.trace 100
out/release/replay_system bench/traces/lua.trace 100
out/release/replay_system bench/traces/python3.trace 50
out/release/replay_system bench/traces/sqlite3.trace 100
cat ARCHITECTURE.md
sort ARCHITECTURE.md
grep -c hakmem ARCHITECTURE.md
sed -n /hakmem/p ARCHITECTURE.md
find docs -name *.svg
bash -c :
perl -pe s/(\w+)/{$1}/ ARCHITECTURE.md
perl -e $SIG{INT}=sub{exit};
/usr/bin/python3 -m json.tool docs/stats.schema.json
ls -lR docs
"""
# What the compiler adds to the name of a function that it splits or copies.
PART = re.compile(r"[.](part|constprop|isra|cold|lto_priv).*")
HEADER = """\
# The functions that ordinary programs call, those of most programs first. The linker puts their
# code together, so that a process has little of the library resident: the kernel maps 64 KiB of a
# file around the page that was touched. What is missing, or no longer exists, links all the same
# (docs/adr/0046). Written by `out/venv/bin/python tools/usual_functions.py`, which needs gdb.
"""


def code_symbols():
    lines = subprocess.run(["nm", LIBRARY], check=True, capture_output=True, text=True).stdout
    return [(int(address, 16), name)
            for address, name in re.findall(r"^(\w+) [tTW] (\S+)$", lines, flags=re.M)]


def record():
    """Runs inside gdb: the names of functions in the order of their first calls."""
    seen = []

    class First(gdb.Breakpoint):
        def __init__(self, address, name):
            super().__init__(f"*{address:#x}", internal=True)
            self.silent = True
            self.function = name

        def stop(self):
            seen.append(self.function)
            self.enabled = False
            return False

    for setting in ("confirm off", "startup-with-shell off", "auto-load libthread-db off"):
        gdb.execute(f"set {setting}")
    gdb.execute(f"set environment LD_PRELOAD {LIBRARY}")
    gdb.execute("set stop-on-solib-events 1")
    gdb.execute("run", to_string=True)
    while not any("libhakmem" in (file.filename or "") for file in gdb.objfiles()):
        gdb.execute("continue", to_string=True)
    gdb.execute("set stop-on-solib-events 0")
    start = int(gdb.execute("info address hak_malloc_slow", to_string=True).split()[-1].rstrip("."),
                16)
    symbols = code_symbols()
    offset = start - next(address for address, name in symbols if name == "hak_malloc_slow")
    for address, name in symbols:
        First(address + offset, name)
    gdb.execute("handle SIGTRAP nopass noprint nostop", to_string=True)
    while gdb.selected_inferior().pid != 0:
        gdb.execute("continue", to_string=True)
    Path(os.environ["HAK_SEEN"]).write_text(json.dumps(seen), encoding="utf-8")


def first_calls(command, seen_file):
    """The functions that a program calls, in the order of their first calls."""
    program, *arguments = command.split()
    environment = {**os.environ, "HAK_SEEN": str(seen_file), "PYTHONPATH": str(ROOT / "tools")}
    seen_file.unlink(missing_ok=True)
    for _ in range(10):  # gdb gives up now and then when a thread ends
        subprocess.run(["gdb", "-nx", "-batch", "-x", __file__, "--args", shutil.which(program),
                        *arguments], cwd=ROOT, env=environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if seen_file.exists():
            names = json.loads(seen_file.read_text(encoding="utf-8"))
            return list(dict.fromkeys(PART.sub("", name) for name in names))
    sys.exit(f"gdb did not run to the end: {command}")


def main():
    callers = collections.Counter()
    first = {}
    with tempfile.TemporaryDirectory() as folder:
        for command in PROGRAMS.strip().splitlines():
            names = first_calls(command, Path(folder) / "seen")
            print(f"{len(names):5} functions: {command}", flush=True)
            callers.update(names)
            for name in names:
                first.setdefault(name, len(first))
    names = sorted(first.keys() & source_words(), key=lambda name: (-callers[name], first[name]))
    LIST.write_text(HEADER + "".join(f"{name}\n" for name in names), encoding="utf-8")
    print(f"{len(names)} functions in {LIST.relative_to(ROOT)}")


if "gdb" in sys.modules:
    record()
elif __name__ == "__main__":
    main()
