#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/preload/leaks_preload.sh - heap_profile=leaks tells what was not freed, oldest first; and
# the boards of processes: private, removed at their end, left by a kill, bounded.
. "$(dirname "$0")/lib.sh"
needs cc
needs strings
cat > "$work/leak.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *kept[40000];
__attribute__((noinline)) static void old_leak(int i) { kept[i] = malloc(3000); }
__attribute__((noinline)) static void new_leak(int i) { kept[i] = malloc(1000); }
__attribute__((noinline)) static void tidy(void)
{
    void *volatile block = malloc(2000);
    free(block);
}
int main(int count, char **arguments)
{
    for (int i = 0; i < 20000; i++) {
        old_leak(i);
        tidy();
    }
    usleep(300000);
    for (int i = 20000; i < 40000; i++)
        new_leak(i);
    if (count > 1 && strcmp(arguments[1], "wait") == 0) {
        puts("ready");
        fflush(stdout);
        pause();
    }
    return kept[0] == kept[1];
}
C
cc -g -O1 -fno-inline -o "$work/leak" "$work/leak.c"

run() { LD_PRELOAD="$PRELOAD_LIB" "$@"; }

# What is freed is not told; what is kept is, with its size, the oldest first.
HAKMEM_HEAP_PROFILE=leaks \
    HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=4K run "$work/leak" 2> "$work/said"
grep -q '^hakmem: about [0-9.]* MiB not freed, allocated at 2 places' "$work/said" ||
    fail "the first line: $(cat "$work/said")"
[ "$(grep -c '^hakmem: not freed: ' "$work/said")" = 2 ] || fail "two places: $(cat "$work/said")"
number='^hakmem: not freed: \([0-9]*\)\.[0-9] MiB in about'
place='allocated at [^<]*leak+\(0x[0-9a-f]*\)'
lines=$(sed -n "s/$number .* $place < .*/\1 \2/p" "$work/said")
set -- $lines
[ "$1" -ge 51 ] && [ "$1" -le 63 ] || fail "the old leak is of 57 MiB: $1"
[ "$3" -ge 16 ] && [ "$3" -le 21 ] || fail "the new leak is of 19 MiB: $3"
if command -v addr2line > /dev/null; then
    [ "$(addr2line -f -e "$work/leak" "$2" | head -1)" = old_leak ] || fail "the oldest comes first"
    [ "$(addr2line -f -e "$work/leak" "$4" | head -1)" = new_leak ] ||
        fail "the newer one is second"
    # Of a caller it is the call that is told, not what comes after it.
    call=$(sed -n '/ old_leak(i);$/=' "$work/leak.c")
    caller=$(sed -n '2s/.*allocated at [^<]* < [^<]*leak+\(0x[0-9a-f]*\) .*/\1/p' "$work/said")
    case $(addr2line -e "$work/leak" "$caller") in
    *:"$call" | *:"$call "*) ;;
    *) fail "the call is in line $call: $(addr2line -e "$work/leak" "$caller")" ;;
    esac
fi

# What a library leaked that was unloaded since is the library's.
cat > "$work/guest.c" <<'C'
#include <stdlib.h>
void *volatile lost;
void guest(void) { lost = malloc(50000); }
C
cat > "$work/inn.c" <<'C'
#include <dlfcn.h>
int main(int count, char **arguments)
{
    void *library = dlopen(arguments[count - 1], RTLD_NOW);
    ((void (*)(void))dlsym(library, "guest"))();
    return dlclose(library);
}
C
cc -g -O1 -shared -fPIC -o "$work/guest.so" "$work/guest.c"
cc -g -O1 -o "$work/inn" "$work/inn.c" -ldl
HAKMEM_HEAP_PROFILE=leaks HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=4K \
    run "$work/inn" "$work/guest.so" 2> "$work/said"
grep -q "in about 1 blocks, .* allocated at $work/guest[.]so+0x" "$work/said" ||
    fail "an unloaded library: $(cat "$work/said")"

# Off, nothing is told and there is no board; nor is there one after a normal end.
leaves_no_board() {
    LD_PRELOAD="$PRELOAD_LIB" "$work/leak" > "$work/said" 2>&1 &
    pid=$!
    wait "$pid" && [ ! -e "/dev/shm/hakmem.profile.$pid" ]
}
leaves_no_board || fail "off, there is a board"
[ ! -s "$work/said" ] || fail "off, something is said"
HAKMEM_HEAP_PROFILE=on
export HAKMEM_HEAP_PROFILE
leaves_no_board || fail "a board stays after a normal end"

# A black box outlives a kill; a mere profile goes with the next process that makes a board.
names_program() { head -c 60000 "$board" | strings | grep -q "$work/leak"; }
# start_and_kill NAME [named]: kills it once it is ready, and its board names the program.
start_and_kill()
{
    mkfifo "$work/said.$1" 2> /dev/null || true
    LD_PRELOAD="$PRELOAD_LIB" "$work/leak" wait > "$work/said.$1" 2> /dev/null &
    pid=$!
    read -r ready < "$work/said.$1"
    board=/dev/shm/hakmem.profile.$pid
    [ -z "$2" ] || becomes "the board names the program" names_program
    kill -9 "$pid"
    wait "$pid" 2> /dev/null || :
}
start_and_kill profile ""
[ -f "$board" ] || fail "a killed process leaves its board"
[ "$(stat -c %a "$board")" = 600 ] || fail "the board is private"
first=$board
export HAKMEM_BLACKBOX=on
start_and_kill blackbox named
unset HAKMEM_BLACKBOX
[ -f "$board" ] || fail "a black box stays"
[ ! -f "$first" ] || fail "the board of a killed process was not removed"
box=$board
run "$work/leak"
[ -f "$box" ] || fail "a black box was removed by another process"
board=$box
names_program || fail "the box names no module"
rm -f "$box"
check_count=15
