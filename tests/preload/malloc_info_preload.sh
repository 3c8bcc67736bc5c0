# SPDX-License-Identifier: MIT
# malloc_info, read as monitoring programs read it: by an XML parser, through the elements that
# glibc has. If this fails, their graphs show nothing, or what is not.
. "$(dirname "$0")/lib.sh"
needs python3

cat >"$work/read.py" <<'END'
import ctypes
import os
import tempfile
import xml.etree.ElementTree as tree

libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.malloc.restype = ctypes.c_void_p
large = libc.malloc(ctypes.c_size_t(10 << 20))
small = [libc.malloc(ctypes.c_size_t(1000)) for i in range(10000)]
with tempfile.TemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fdopen(os.dup(file.fileno()), b"w"))
    assert libc.malloc_info(1, stream) == 22
    assert libc.malloc_info(0, stream) == 0
    libc.fclose(stream)
    file.seek(0)
    root = tree.parse(file).getroot()

assert root.tag == "malloc" and root.get("version") == "1"
totals = {total.get("type"): total for total in root.findall("total")}
system = {row.get("type"): int(row.get("size")) for row in root.findall("system")}
free = int(totals["fast"].get("size")) + int(totals["rest"].get("size"))
used = system["current"] - free
mapped = int(totals["mmap"].get("size"))
assert 10_000_000 < used < system["current"] <= system["max"], (used, system)
assert 10 << 20 <= mapped and int(totals["mmap"].get("count")) >= 1
assert len(root.findall("heap")) == 1 and root.find("heap/sizes/size") is not None
own = {row.get("name"): int(row.get("value")) for row in root.findall("hakmem/counter")}
guarded = own["guarded_live_bytes"]
assert own["small_live_bytes"] + guarded == used and own["large_live_bytes"] == mapped
assert own["fallback"] == 0
classes = root.findall("hakmem/class")
assert sum(int(row.get("live")) * int(row.get("size")) for row in classes) + guarded == used
assert sum(int(row.get("live")) for row in classes if row.get("size") == "1024") >= \
    10000 - own["guarded_live_blocks"]
print("well")
END
preloaded info python3 "$work/read.py"
equal "the document says what the program did, $(tail -c 300 "$work/info.err")" \
    "$(cat "$work/info.out")" well
served info
