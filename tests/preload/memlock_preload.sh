# SPDX-License-Identifier: MIT
# mlockall(2) locks, and counts against RLIMIT_MEMLOCK, all of the address space in use. A program
# that locks all it has must find that hakmem uses hardly more than the program; and that leaves no
# less for one that never locks. If this fails, keepers of keys cannot lock, or all programs of
# ordinary users run out of memory at a fraction of the machine's.
. "$(dirname "$0")/lib.sh"
needs python3 grep

python=$(python3 -c 'import sys; print(sys.executable)')
cat >"$work/reserve.py" <<'END'
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
# Untouched: address space, not memory.
print(sum(libc.malloc(ctypes.c_size_t(1 << 30)) is not None for number in range(24)))
END

plainly size grep VmSize /proc/self/status
preloaded size grep VmSize /proc/self/status
plain_kb=$(sed 's/[^0-9]//g' "$work/size.plain.out")
size_kb=$(sed 's/[^0-9]//g' "$work/size.out")
check "$size_kb KiB of address space, $plain_kb without hakmem" \
    [ "$size_kb" -lt $((plain_kb + 16384)) ]
preloaded reserve "$python" "$work/reserve.py"
equal "so many of 24 GiB can be had" "$(cat "$work/reserve.out")" 24
