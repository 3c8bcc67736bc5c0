# SPDX-License-Identifier: MIT
# The whole surface in a static program: hakmem.o or libhakmem.a before libc.a. A name that is
# missing makes the linker take libc's malloc as well, and fail with two of each.
. "$(dirname "$0")/lib.sh"
needs cc
: "${OUT:?says where hakmem was built}"
printf 'int main(void) { return 0; }\n' >"$work/empty.c"
cc -static -o "$work/empty" "$work/empty.c" 2>/dev/null || skip "no static libc"

for hakmem in hakmem.o libhakmem.a; do
    check "a static program links with $hakmem" \
        cc -static -std=gnu11 -O1 -w -fno-builtin -DLINKED_STATICALLY -I "$tests/.." -I "$tests" \
        -o "$work/surface" "$tests/surface.c" "$OUT/$hakmem" -pthread -ldl 2>"$work/ld.err" ||
        fail "$(cat "$work/ld.err")"
    check "it runs with $hakmem" timeout "$limit_s" "$work/surface"
done
