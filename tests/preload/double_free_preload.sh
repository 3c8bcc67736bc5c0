# SPDX-License-Identifier: MIT
# README's example of misuse: when `free(p); free(p);` is told; and what else of free's misuse is.
# If this fails, README says what is not so, or a mistake that glibc's malloc stops goes unseen.
. "$(dirname "$0")/lib.sh"
command -v cc >/dev/null || skip "no C compiler"
cat >"$work/twice.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
/* twice BYTES OTHERS: frees a block twice: in a row, or with the last of others in between, which
 * are freed then. */
int main(int argument_count, char **arguments)
{
    static void *others[5000];
    size_t bytes = strtoul(arguments[1], NULL, 10);
    int count = argument_count > 2 ? atoi(arguments[2]) : 0;
    for (int i = 0; i < count; i++)
        others[i] = malloc(bytes);
    void *volatile p = malloc(bytes);
    free(p);
    if (count > 0)
        free(others[count - 1]);
    free(p);
    if (write(1, "both are over\n", 14) != 14)
        return 1;
    for (int i = 0; i < count - 1; i++)
        free(others[i]);
    return 0;
}
END
cat >"$work/misuse.c" <<'END'
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static int variables[100];
static void *volatile hidden;
static void give(void *block)
{
    hidden = block;
    free(hidden);
}
/* misuse WAY BYTES: misuses free in one way, and ends. */
int main(int argument_count, char **arguments)
{
    static void *others[5000];
    const char *way = arguments[1];
    size_t bytes = strtoul(arguments[2], NULL, 10);
    char *p = malloc(bytes), *q = malloc(bytes);
    int count = strcmp(way, "delayed") == 0 ? 8 : strcmp(way, "long-delayed") == 0 ? 5000 : 0;
    for (int i = 0; i < count; i++)
        others[i] = malloc(bytes);
    if (strcmp(way, "interleaved") == 0 || count != 0) {
        give(p);
        give(q);
        for (int i = 0; i < count; i++)
            give(others[i]);
        give(p);
    } else if (strcmp(way, "resized") == 0) {
        give(p);
        hidden = realloc(hidden, bytes * 2);
    } else if (strncmp(way, "interior-", 9) == 0)
        give(p + atoi(way + 9));
    else if (strcmp(way, "static") == 0)
        give(variables + 4);
    else if (strcmp(way, "code") == 0)
        give((void *)((unsigned long)main & ~15ul));
    else if (strcmp(way, "far") == 0)
        give(p + (1ul << 42));
    else if (strcmp(way, "mapped") == 0)
        give((char *)mmap(0, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 64);
    return 0;
}
END
cc -fno-builtin -w -o "$work/misuse" "$work/misuse.c"
# A block that is sampled for a guard would be stopped at once, whatever its size.
HAKMEM_GUARD_RATE=0
export HAKMEM_GUARD_RATE
cc -fno-builtin -w -o "$work/twice" "$work/twice.c"
# twice NAME WORDS...: its status is in $status, what it said in $work/NAME.out and .err.
twice() {
    preloaded "$@"
    status=$(cat "$work/$name.status")
}

# Of slots and of processors, where this machine has them.
for caches in processor thread; do
    caches_belong_to $caches || continue
    for bytes in 16 64 1000; do
        twice alone "$work/twice" $bytes
        equal "$caches, $bytes alone: it aborts, $(cat "$work/alone.err")" "$status" 134
        equal "$caches, $bytes alone: at once" "$(cat "$work/alone.out")" ""
        twice pair "$work/twice" $bytes 1
        equal "$caches, $bytes, one between: it aborts, $(cat "$work/pair.err")" "$status" 134
        equal "$caches, $bytes, one between: when it ends" "$(cat "$work/pair.out")" "both are over"
        twice among "$work/twice" $bytes 5000
        equal "$caches, $bytes among others: it aborts, $(cat "$work/among.err")" "$status" 134
        equal "$caches, $bytes: when the bin is full" "$(cat "$work/among.out")" "both are over"
        twice hardened env HAKMEM_MODE=hardened "$work/twice" $bytes
        equal "$bytes in hardened mode: it aborts" "$status" 134
        equal "$bytes in hardened mode: at once" "$(cat "$work/hardened.out")" ""
        check "$bytes in hardened mode: $(cat "$work/hardened.err")" \
            grep -q "^hakmem: double free: pointer 0x" "$work/hardened.err"
    done

    # What glibc stops by default, of small blocks, and what the line says.
    while read -r way what state; do
        for bytes in 64 1000 5000; do
            twice misused "$work/misuse" "$way" $bytes
            equal "$caches, $way of $bytes: it aborts, $(cat "$work/misused.err")" "$status" 134
            check "$caches, $way of $bytes: $(cat "$work/misused.err")" \
                grep -qE "^hakmem: $what: pointer 0x[0-9a-f]+, .*$state" "$work/misused.err"
        done
    done <<'END_OF_WAYS'
interleaved (double.free|invalid.free) (already.free|nothing.is.allocated.there)
delayed (double.free|invalid.free) (already.free|nothing.is.allocated.there)
long-delayed (double.free|invalid.free) (already.free|nothing.is.allocated.there)
resized (double.free|invalid.realloc) (already.free|nothing.is.allocated.there|freed)
interior-1 invalid.free (not|nothing)
interior-8 invalid.free (not|nothing)
interior-16 invalid.free (not.the.start.of.a.block|nothing)
static invalid.free in.the.program's.own
code invalid.free in.the.program's.own
far invalid.free no.memory.is.there
mapped invalid.free neither.from.hakmem.nor.from.libc
END_OF_WAYS
    twice misused "$work/misuse" well 64
    equal "$caches: the program is right otherwise, $(cat "$work/misused.err")" "$status" 0
done
unset HAKMEM_CACHES
twice named "$work/twice" 64 5000
check "the line of README: $(cat "$work/named.err")" grep -qE \
    '^hakmem: double free: pointer 0x[0-9a-f]+, block of 64 bytes, already free$' "$work/named.err"
for bytes in 200000 5000000; do
    twice large "$work/twice" $bytes 10
    equal "$bytes: it aborts" "$status" 134
    equal "$bytes: at once" "$(cat "$work/large.out")" ""
done
