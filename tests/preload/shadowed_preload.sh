# SPDX-License-Identifier: MIT
# A program that calls another malloc than hakmem's, which is mapped: the statistics say that it
# serves nothing, and say that of no other program. If this fails, people compare allocators that
# were not called.
. "$(dirname "$0")/lib.sh"
needs ls

preloaded own "$OUT/tests/preload_own_malloc"
equal "own: ends well" "$(cat "$work/own.status")" 0
equal "own: the number says it" "$(counter own shadowed)" 1
says="hakmem: the library is mapped but serves nothing: another malloc comes first, \
the program's own or one preloaded before"
equal "own: one line" "$(cat "$work/own.err")" "$says"
"$OUT/hakmem" stats "$work/own.stats" >"$work/shown"
check "hakmem stats begins with it" \
    [ "$(sed -n '2s/.* serves nothing: .*/yes/p' "$work/shown")" = yes ]
HAKMEM_STATS_INTERVAL=10ms
export HAKMEM_STATS_INTERVAL
preloaded own_thread "$OUT/tests/preload_own_malloc"
equal "hakmem's own thread is no customer" "$(tail -n 999 "$work/own_thread.stats" |
    sed -n 's/^shadowed: //p' | sort -u)" 1
unset HAKMEM_STATS_INTERVAL
preloaded prewarmed env HAKMEM_PREWARM=4M "$OUT/tests/preload_own_malloc"
equal "nor is what is warmed" "$(counter prewarmed shadowed)" 1

preloaded ls ls /
equal "ls is served" "$(counter ls shadowed)" 0
check "ls: nothing is said: $(cat "$work/ls.err")" [ ! -s "$work/ls.err" ]
env LD_PRELOAD="$PRELOAD_LIB" "$OUT/tests/preload_own_malloc" >"$work/quiet" 2>&1
equal "unasked nothing is said" "$(cat "$work/quiet")" own

# One at a fixed address, in which the loader finds the names' stubs first.
if command -v cc >/dev/null; then
    cat >"$work/fixed.c" <<'END'
#include <stdlib.h>
struct family {
    void *(*take)(size_t), *(*zero)(size_t, size_t), *(*resize)(void *, size_t);
    void (*give)(void *);
} family;
int main(void)
{
    family = (struct family){malloc, calloc, realloc, free};
    family.give(family.resize(family.take(100), 200));
    return 0;
}
END
    cc -no-pie -fno-pie -o "$work/fixed" "$work/fixed.c"
    preloaded fixed "$work/fixed"
    equal "a program at a fixed address is served" "$(counter fixed shadowed)" 0
fi
# The linked library serves without any search.
HAKMEM_STATS=raw "$OUT/tests/numbers_linked" >/dev/null 2>"$work/linked.err" || :
check "linked: not shadowed" grep -q '^shadowed: 0$' "$work/linked.err"
