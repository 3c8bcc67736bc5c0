# SPDX-License-Identifier: MIT
# gcc on hakmem makes of hakmem's own sources the objects that it makes without. If this fails,
# builds under hakmem are not to be trusted, and its big short-lived heaps are served wrongly.
. "$(dirname "$0")/lib.sh"
needs gcc

root=$tests/../..
flags="-std=gnu11 -O2 -g1 -fPIC -fvisibility=hidden -ftls-model=initial-exec
       -I$root/src -I$root/include
       -ffile-prefix-map=$work/plain=. -ffile-prefix-map=$work/preloaded=.
       -DHAK_CHECK_LEVEL=0 -DHAK_TINY=0 -DHAK_SMALL_WINDOW=0 -DHAK_INTERPOSE=1"
for source in api/malloc api/malloc_slow cache/heap span/span_heap conf/conf; do
    object=$(basename $source).o
    # shellcheck disable=SC2086 # the flags are words
    well "$(basename $source)" gcc $flags -c "$root/src/$source.c" -o "$object"
    check "$object is the same" cmp "$work/plain/$object" "$work/preloaded/$object"
done

# Templates make the compiler allocate most.
if command -v g++ >/dev/null; then
    well cpp g++ -std=c++17 -O1 -c "$tests/cpp.cpp" -o cpp.o
    check "cpp.o is the same" cmp "$work/plain/cpp.o" "$work/preloaded/cpp.o"
fi
