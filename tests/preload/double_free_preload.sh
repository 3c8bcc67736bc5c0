# SPDX-License-Identifier: MIT
# README's example of misuse: when `free(p); free(p);` is told, and when it is not. If this fails,
# README says what is not so.
. "$(dirname "$0")/lib.sh"
command -v cc >/dev/null || skip "no C compiler"
cat >"$work/twice.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
/* twice BYTES OTHERS: frees a block twice in a row, among others that are freed then. */
int main(int argument_count, char **arguments)
{
    static void *others[5000];
    size_t bytes = strtoul(arguments[1], NULL, 10);
    int count = argument_count > 2 ? atoi(arguments[2]) : 0;
    for (int i = 0; i < count; i++)
        others[i] = malloc(bytes);
    void *volatile p = malloc(bytes);
    free(p);
    free(p);
    if (write(1, "both are over\n", 14) != 14)
        return 1;
    for (int i = 0; i < count; i++)
        free(others[i]);
    return 0;
}
END
# A block that is sampled for a guard would be stopped at once, whatever its size.
HAKMEM_GUARD_RATE=0
export HAKMEM_GUARD_RATE
cc -fno-builtin -w -o "$work/twice" "$work/twice.c"
# twice NAME WORDS...: its status is in $status, what it said in $work/NAME.out and .err.
twice() {
    preloaded "$@"
    status=$(cat "$work/$name.status")
}

for bytes in 16 64 1000; do
    twice alone "$work/twice" $bytes
    equal "$bytes alone: it ends before anything is seen" "$status" 0
    twice among "$work/twice" $bytes 5000
    equal "$bytes among others: it aborts, $(cat "$work/among.err")" "$status" 134
    equal "$bytes: when the copies leave the bin" "$(cat "$work/among.out")" "both are over"
    twice hardened env HAKMEM_MODE=hardened "$work/twice" $bytes
    equal "$bytes in hardened mode: it aborts" "$status" 134
    equal "$bytes in hardened mode: at once" "$(cat "$work/hardened.out")" ""
    check "$bytes in hardened mode: $(cat "$work/hardened.err")" \
        grep -q "^hakmem: double free: pointer 0x" "$work/hardened.err"
done
twice named "$work/twice" 64 5000
check "the line of README: $(cat "$work/named.err")" grep -qE \
    '^hakmem: double free: pointer 0x[0-9a-f]+, block of 64 bytes, already free$' "$work/named.err"
for bytes in 200000 5000000; do
    twice large "$work/twice" $bytes 10
    equal "$bytes: it aborts" "$status" 134
    equal "$bytes: at once" "$(cat "$work/large.out")" ""
done
