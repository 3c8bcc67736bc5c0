# SPDX-License-Identifier: MIT
# The storms of storms.c in a static program of glibc, where nothing finds tables for the unwinder
# but the program itself; with HAK_FULL also in one of musl, for which hakmem is compiled here.
. "$(dirname "$0")/lib.sh"
needs cc
: "${OUT:?says where hakmem was built}"
root=$tests/../..
printf 'int main(void) { return 0; }\n' >"$work/empty.c"
cc -static -o "$work/empty" "$work/empty.c" 2>/dev/null || skip "no static libc"

# link NAME COMPILER... : storms.c with what is named.
link() {
    name=$1
    shift
    check "it links with $name" "$@" -static -std=gnu11 -O1 -w -fno-builtin -DLINKED_STATICALLY \
        -I "$root/include" -I "$root/tests" -o "$work/$name" "$tests/storms.c" "$work/$name.o" \
        -pthread 2>"$work/$name.ld" || fail "$(cat "$work/$name.ld")"
}

storm() {
    for test in signals_whose_handlers_allocate children_that_allocate_and_exit \
        threads_that_come_and_go; do
        check "$1: $test" timeout 700 "$work/$1" "$test"
    done
}

# compile COMPILER...: all of src/ for another libc, into $work/musl.o.
compile() {
    mkdir "$work/objects"
    find "$root/src" -name '*.c' ! -name malloc.c ! -name cpu_cache_none.c >"$work/sources"
    find "$root/src" -name "*_$(uname -m).S" >>"$work/sources"
    echo "$root/packaging/rust/hakmem-sys/src/no_catch.c" >>"$work/sources"
    number=0
    while read -r source; do
        number=$((number + 1))
        # shellcheck disable=SC2046
        "$@" -c -O2 -w -std=gnu11 $(cat "$root/cmake/code_flags.txt") -I "$root/src" \
            -I "$root/include" -DHAK_PROJECT_VERSION='"0"' -DHAK_INTERPOSE=1 -DHAK_SHARED=0 \
            -DHAK_CHECK_LEVEL=0 -DHAK_TINY=0 -DHAK_SMALL_WINDOW=0 -idirafter /usr/include \
            -idirafter "/usr/include/$(uname -m)-linux-gnu" -o "$work/objects/$number.o" \
            "$source" || return 1
    done <"$work/sources"
    ld -r -o "$work/musl.o" "$work"/objects/*.o
}

cp "$OUT/hakmem.o" "$work/glibc.o"
link glibc cc
storm glibc
if full && command -v musl-gcc >/dev/null && [ -e "$root/src/api/malloc_$(uname -m).S" ]; then
    check "hakmem is compiled for musl" compile ${CMAKE_C_COMPILER_LAUNCHER:-} musl-gcc
    link musl musl-gcc
    storm musl
fi
