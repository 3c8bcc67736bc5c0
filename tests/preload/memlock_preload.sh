# SPDX-License-Identifier: MIT
# A limit of locked memory that somebody chose, or that a distribution sets for everybody (64 MiB,
# or an eighth of the memory). A program that locks all it has must find that reservations do not
# use the limit up; one that never locks must not notice the limit. If this fails, keepers of keys
# cannot lock, or all programs of ordinary users run out of memory at a fraction of the machine's.
. "$(dirname "$0")/lib.sh"
needs python3 grep

aid=$OUT/tests/libpreload_memlock.so
[ -e "$aid" ] || fail "no $aid"
python=$(python3 -c 'import sys; print(sys.executable)')
cat >"$work/reserve.py" <<'END'
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
# Untouched: address space, not memory.
print(sum(libc.malloc(ctypes.c_size_t(1 << 30)) is not None for number in range(24)))
END

for limit_mib in 64 256 2048; do
    PRELOAD_MEMLOCK_MIB=$limit_mib
    export PRELOAD_MEMLOCK_MIB
    # mlockall(2) refuses when all of the address space in use exceeds the limit.
    preloaded size_$limit_mib env LD_PRELOAD="$aid:$PRELOAD_LIB" grep VmSize /proc/self/status
    size_kb=$(sed 's/[^0-9]//g' "$work/size_$limit_mib.out")
    check "$limit_mib MiB: $size_kb KiB of address space leave half of the limit free" \
        [ "$size_kb" -lt $((limit_mib * 512)) ]
    preloaded reserve_$limit_mib env LD_PRELOAD="$aid:$PRELOAD_LIB" "$python" "$work/reserve.py"
    equal "$limit_mib MiB: so many of 24 GiB can be had" "$(cat "$work/reserve_$limit_mib.out")" 24
done
