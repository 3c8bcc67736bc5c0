# SPDX-License-Identifier: MIT
# A C++ program that is linked with another malloc (jemalloc, tcmalloc) runs on hakmem alone when
# hakmem is preloaded: no form of operator new is left to the other library, whose blocks hakmem
# could not free. One that defines malloc itself gets its own blocks from all that libc does with
# malloc. If this fails, such programs leak every buffer of std::stable_sort, or free blocks that
# they do not know.
. "$(dirname "$0")/lib.sh"
needs ldconfig

preloaded own_malloc "$OUT/tests/preload_own_malloc"
equal "own_malloc: every block is its own" "$(cat "$work/own_malloc.status")" 0
check "own_malloc: hakmem was there" [ -s "$work/own_malloc.stats" ]

tested=
for library in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
    path=$(ldconfig -p | sed -n "s/^.*$library .*=> //p" | head -n 1)
    [ -n "$path" ] || continue
    tested=$library
    # The other library comes behind hakmem, as a dependency of the program would.
    for program in cpp operators; do
        name=$library.$program
        preloaded "$name" env LD_PRELOAD="$PRELOAD_LIB:$path" "$OUT/tests/${program}_preload"
        equal "$name: ends well, $(cat "$work/$name.out")" "$(cat "$work/$name.status")" 0
        check "$name: says nothing on stderr" [ ! -s "$work/$name.err" ]
        served "$name"
    done
done
[ -n "$tested" ] || skip "no other malloc is installed"
