# SPDX-License-Identifier: MIT
# Real programs and our own in hardened mode: a program that uses memory as the standards say
# notices nothing, and is never reported. If this fails, the mode cannot be left on.
. "$(dirname "$0")/lib.sh"

# on COMMAND...: says the same in hardened mode as on the system's malloc.
on() {
    alike "$1" HAKMEM_MODE=hardened "$@"
    equal "$1: nothing is reported" "$(grep hakmem: "$work/$1.err")" ""
    served_hardened "$1"
}

if command -v python3 >/dev/null; then
    on python3 "$tests/python_workload.py"
    cat >"$work/limit.py" <<'END'
kept = []
try:
    while len(kept) < 1000:
        kept.append(bytearray(500000))
except MemoryError:
    print("refused with", 20 < len(kept) < 128)
kept = None
kept = [bytearray(500) for i in range(20000)]
kept = None
print(len(bytearray(10000000)))
END
    preloaded limit env HAKMEM_MODE=hardened HAKMEM_LIMIT=64M python3 "$work/limit.py"
    equal "the limit holds in hardened mode, and memory that was freed can be had again" \
        "$(tr '\n' ' ' <"$work/limit.out")" "refused with True 10000000 "
fi
if command -v python3 >/dev/null; then
    # A freed large block has no access: it does not count as data until it is used again.
    cat >"$work/data.py" <<'END'
import resource
resource.setrlimit(resource.RLIMIT_DATA, (256 << 20, resource.RLIM_INFINITY))
freed = bytearray(64 << 20)
freed = None
kept = []
try:
    while len(kept) < 1000:
        kept.append(bytearray(64 << 20))
except MemoryError:
    print("refused with", 1 < len(kept) < 4)
try:
    while len(kept) < 100000:
        kept.append(bytearray(5000))
except MemoryError:
    pass
kept = None
print(len(bytearray(10000000)))
END
    preloaded data env HAKMEM_MODE=hardened python3 "$work/data.py"
    equal "under a limit of data memory is refused, and what was freed can be had again" \
        "$(tr '\n' ' ' <"$work/data.out")" "refused with True 10000000 "
fi
if command -v perl >/dev/null; then
    on perl "$tests/perl_workload.pl"
fi
if command -v gcc >/dev/null; then
    cat >"$work/program.c" <<'END'
#include <stdio.h>
static int square(int x) { return x * x; }
int main(void) { for (int i = 0; i < 100; i++) printf("%d\n", square(i)); return 0; }
END
    on gcc -O2 -S -o - "$work/program.c"
fi
seq 1 200000 | sort -R --random-source=/bin/sh >"$work/numbers"
on sort -n --parallel=4 -S 20M "$work/numbers"

own_programs HAKMEM_MODE=hardened cpp early errno exec exit fork hakmem_new heaps hot_cold limits \
    quiet life residency stop
