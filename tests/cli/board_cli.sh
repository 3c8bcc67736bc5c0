# SPDX-License-Identifier: MIT
# The profile of a process that runs, and what one leaves that was killed: hakmem profile, growth
# and autopsy by the number of the process.
. "$(dirname "$0")/lib.sh"
needs awk jq mkfifo seq
holder=$OUT/tests/cli_holder
rate=2048

# hold SETTING...: the holder runs, and waits; $holder_pid is its number.
hold() {
    rm -f "$work/in" "$work/said"
    mkfifo "$work/in"
    env "$@" HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=$rate \
        LD_PRELOAD="$PRELOAD_LIB" "$work/holder" \
        <"$work/in" >"$work/said" &
    holder_pid=$!
    exec 7>"$work/in"
    await ready 1
}

# await WORD COUNT: the holder has said it so often.
has_said() { [ "$(grep -c "^$1\$" "$work/said")" -ge "$2" ]; }
await() { becomes "the holder says $1" has_said "$1" "$2"; }

killed() {
    kill -KILL "$holder_pid" 2>/dev/null || :
    wait "$holder_pid" 2>/dev/null || :
    exec 7>&-
}
holder_pid=
passer_pid=
at_end() {
    [ -z "$holder_pid" ] || kill -KILL "$holder_pid" 2>/dev/null || :
    [ -z "$passer_pid" ] || kill -KILL "$passer_pid" 2>/dev/null || :
    rm -f "/dev/shm/hakmem.profile.$holder_pid"
}

# near NAME NUMBER EXPECTED: within a tenth.
near() {
    check "$1: $2, near $3" awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > 0.9 * b && a < 1.1 * b) }'
}

# bytes_of NAME FUNCTION FIELD: of a site in NAME.out.
bytes_of() {
    jq "[.sites[] | select(.stack[0].function == \"$2\") | .$3] | add" "$work/$1.out"
}

# Of a running process, as it is.
cp "$holder" "$work/holder"
hold HAKMEM_HEAP_PROFILE=on
asked live 0 profile "$holder_pid" --json
near "what is kept" "$(bytes_of live yard::keep live_bytes)" 8000000
near "so many blocks" "$(bytes_of live yard::keep live_objects)" 8000
near "what passes" "$(bytes_of live yard::pass allocated_bytes)" 80000000
check "and does not stay" [ "$(bytes_of live yard::pass live_bytes)" = 0 ]
freeing='first(.sites[] | select(.stack[0].function == "yard::pass")) | .freed_by[0].function'
equal "who frees it" "$(jq -r "$freeing" "$work/live.out")" yard::pass
equal "of what nobody frees nothing is said" \
    "$(jq '[.sites[] | select(.stack[0].function == "yard::keep") | .freed_by] | unique[0]' \
        "$work/live.out")" null
equal "whose it is" "$(jq -r .program "$work/live.out")" holder
equal "its number" "$(jq .pid "$work/live.out")" "$holder_pid"
equal "the rate" "$(jq .period_bytes "$work/live.out")" "$rate"
equal "where" "$(jq -r 'first(.sites[] | select(.stack[0].function == "yard::keep"))
    | .stack[0].file' "$work/live.out" | sed 's,.*/,,')" holder.cpp
asked table 0 profile "$holder_pid"
shows table '^holder, process [0-9]+: [78]\.[0-9] MiB live in [0-9]+ blocks$'
shows table '^estimates; one sample in 2\.0 KiB in the mean, for '
# All of it, or nearly: a block of stdio's may be sampled, too.
share='(9[0-9]\.[0-9]|100\.0)%'
shows table "^ +[78]\\.[0-9] MiB +$share +[0-9]+ +[-0-9a-z. ]+  yard::keep  holder\\.cpp:"
asked folded 0 profile "$holder_pid" --folded
shows folded ';main;yard::keep [78][0-9]{6}$'
asked pprof 0 profile "$holder_pid" --pprof "$work/board.pprof" --flame "$work/board.html"
asked pprof_json 0 profile "$work/board.pprof" --json
near "what pprof has" "$(bytes_of pprof_json yard::keep live_bytes)" 8000000
asked leaks 0 profile "$holder_pid" --leaks
shows leaks 'live +blocks +oldest +grows a min  where$'
shows leaks '  yard::keep  holder\.cpp:'

# What passes while the profile is read is not live: each block is sampled here, and one lives.
HAKMEM_HEAP_PROFILE=on HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=1 \
    LD_PRELOAD="$PRELOAD_LIB" "$OUT/tests/cli_passer" >"$work/passes" &
passer_pid=$!
is_passing() {
    "$hakmem" profile "$passer_pid" --json >"$work/passing.out" 2>/dev/null &&
        [ "$(bytes_of passing pass allocated_objects)" != null ]
}
becomes "it passes" is_passing
for _ in $(seq 30); do
    asked passing 0 profile "$passer_pid" --json
    check "no more than one block, $(bytes_of passing pass live_objects)" \
        [ "$(bytes_of passing pass live_objects)" -le 1 ]
done
kill -KILL "$passer_pid"
wait "$passer_pid" 2>/dev/null || :
rm -f "/dev/shm/hakmem.profile.$passer_pid"

# What grows while it is watched.
# grows NAME STATUS COUNT ARGUMENT...: `hakmem growth`, which takes $took seconds; the holder leaks
# so often between its looks.
leaked=0
look_for_growth() {
    begun=$(date +%s%N)
    "$hakmem" growth "$holder_pid" "$@" >"$work/$name.out" 2>"$work/$name.err" 7>&- &
    growth_pid=$!
}
# On a busy machine it may have slept, and ended, before anybody saw it.
is_seen_asleep() {
    grep -q '^State:.S' "/proc/$growth_pid/status" && return
    [ -d "/proc/$growth_pid" ] || look_for_growth "$@"
    return 1
}
# It is stopped between its looks, of which the second one comes two seconds after its start, or
# later.
is_stopped_between() {
    is_seen_asleep "$@" || return 1
    kill -STOP "$growth_pid"
    [ $(($(date +%s%N) - begun)) -lt 1900000000 ] && return
    kill -KILL "$growth_pid"
    wait "$growth_pid" || :
    look_for_growth "$@"
    return 1
}
grows() {
    name=$1
    expected=$2
    count=$3
    shift 3
    look_for_growth "$@"
    becomes "it has looked, and sleeps until all has leaked" is_stopped_between "$@"
    for _ in $(seq "$count"); do echo >&7; done
    leaked=$((leaked + count))
    await done "$leaked"
    kill -CONT "$growth_pid"
    status=0
    wait "$growth_pid" || status=$?
    took=$(awk -v ns=$(($(date +%s%N) - begun)) 'BEGIN { print ns / 1e9 }')
    equal "$name: exit status, $(head -c 300 "$work/$name.err")" "$status" "$expected"
}
grows growth 0 3 2s
age='[0-9.]+ (m?s|min)' # a busy machine takes its time
grown="^ +\+[23]\.[0-9] MiB +\+[0-9.]+ [KM]iB/s +[23]\.[0-9] MiB +$age"
shows growth "$grown  yard::leak  holder\.cpp:"
# Its two looks were two seconds apart at least, and no more than it took; a tenth is rounding.
check "so much a second, in $took s: $(cat "$work/growth.out")" awk -v took="$took" '
    /yard::leak/ { a_second = $4 == "KiB/s" ? $3 / 1024 : $3
        is_right = a_second < $1 / 2 + 0.1 && a_second > $1 / took - 0.1 }
    END { exit !is_right }' "$work/growth.out"
check "nothing else" sh -c '! grep -q yard::keep "$0"' "$work/growth.out"
grows too_much 3 1 2 --most 500K
shows too_much 'yard::leak'
asked not_too_much 0 growth "$holder_pid" 0.2 --most 0
shows not_too_much '^nothing$'

# A board that finds no memory for some stacks says so, and shows them once there is some.
cat >"$work/crowd.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
static void *volatile kept;
static int depth = 0;
void *left(unsigned path), *right(unsigned path);
__attribute__((noinline)) void *next(unsigned path)
{
    void *block = path == 1 ? malloc(100000) : path % 2 ? left(path / 2) : right(path / 2);
    depth++; /* no call is a jump */
    return block;
}
__attribute__((noinline)) void *left(unsigned path) { void *at = next(path); depth++; return at; }
__attribute__((noinline)) void *right(unsigned path) { void *at = next(path); depth--; return at; }
int main(void)
{
    kept = next(1);
    for (unsigned turn = 0; puts("ready"), fflush(stdout), getchar() != EOF; turn++) {
        for (unsigned path = 256; turn == 0 && path < 512; path++)
            kept = next(path);
        for (unsigned i = 0; i < 1000; i++)
            free(next(1));
    }
    return 0;
}
C
"${CC:-cc}" -g -O1 -o "$work/crowd" "$work/crowd.c"
has_crowded() { [ "$(grep -c ready "$work/crowded")" = 2 ]; }
# crowd_is_shown: the process has allocated more, and its profile is asked for again.
crowd_is_shown() {
    echo >&9
    "$hakmem" profile "$crowd_pid" --all >"$work/crowd.out"
    ! grep -q 'stacks are missing' "$work/crowd.out"
}
if unshare --mount true 2>/dev/null; then
    mkfifo "$work/crowd_in"
    unshare --mount sh -c 'mount -t tmpfs -o size=2m shm /dev/shm && exec env \
        HAKMEM_HEAP_PROFILE=on HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=2048 \
        LD_PRELOAD="$1" "$0/crowd"' "$work" "$PRELOAD_LIB" <"$work/crowd_in" >"$work/crowded" &
    crowd_pid=$!
    exec 9>"$work/crowd_in"
    crowd_shm=/proc/$crowd_pid/"root"/dev/shm
    becomes "the crowd is ready" grep -q ready "$work/crowded"
    becomes "it has a board" [ -e "$crowd_shm/hakmem.profile.$crowd_pid" ]
    dd if=/dev/zero of="$crowd_shm/full" bs=4k 2>/dev/null || :
    echo >&9
    becomes "it has allocated" has_crowded
    asked crowded 0 profile "$crowd_pid"
    shows crowded '^[0-9]+ stacks are missing: there is no room in /dev/shm for them$'
    rm "$crowd_shm/full"
    becomes "all of it is shown" crowd_is_shown
    near "what it holds" "$("$hakmem" profile "$crowd_pid" --json | jq .live_bytes)" 25700000
    exec 9>&-
    wait "$crowd_pid"
fi

# A process in a container has another number there, and its own /dev/shm and files.
if unshare --mount --pid --fork true 2>/dev/null; then
    mkdir "$work/inside"
    cp "$work/holder" "$work/inside/boxed"
    mkfifo "$work/boxed_in"
    unshare --mount --pid --fork sh -c 'mount -t tmpfs shm /dev/shm &&
        mount --bind "$0/inside" "$0/plain" && cd "$0/plain" && exec env HAKMEM_HEAP_PROFILE=on \
        HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=2048 \
        LD_PRELOAD="$1" "$0/plain/boxed"' "$work" "$PRELOAD_LIB" \
        <"$work/boxed_in" >"$work/boxed" 2>/dev/null &
    outer_pid=$!
    exec 8>"$work/boxed_in"
    becomes "the boxed one is ready" grep -q ready "$work/boxed"
    boxed_pid=$(cat "/proc/$outer_pid/task/$outer_pid/children")
    boxed_pid=${boxed_pid% }
    asked boxed 0 profile "$boxed_pid" --folded
    shows boxed ';main;yard::keep [78][0-9]{6}$'
    kill -KILL "$boxed_pid"
    exec 8>&-
fi

# A file that is another one by now names nothing.
mv "$work/holder" "$work/holder.old"
"${CC:-cc}" -x c -o "$work/holder" - <<'C'
int keep(void) { return 0; }
int main(void) { return keep(); }
C
asked replaced 0 profile "$holder_pid" --folded
check "no name is taken from it" sh -c '! grep -q ";main;" "$0"' "$work/replaced.out"
shows replaced ';holder\+0x[0-9a-f]+;holder\+0x[0-9a-f]+ [78][0-9]{6}$'
mv "$work/holder.old" "$work/holder"

# Any piece of a board, and what is of another version or process, is refused in one line.
board=/dev/shm/hakmem.profile.$holder_pid
cp "$board" "$work/board"
asked file 0 profile "$work/board" --folded
check "a copy says the same of what is kept" \
    [ "$(grep yard::keep "$work/file.out")" = "$(grep yard::keep "$work/folded.out")" ]
for bytes in 8 100 400 5000 100000 800000; do
    head -c "$bytes" "$work/board" >"$work/piece"
    status=0
    "$hakmem" profile "$work/piece" >"$work/piece.out" 2>"$work/piece.err" || status=$?
    equal "cut after $bytes bytes: $(cat "$work/piece.err")" "$status" 1
    equal "cut after $bytes bytes: lines" "$(wc -l <"$work/piece.err")" 1
done
cp "$work/board" "$work/later"
printf '\377' | dd of="$work/later" bs=1 seek=8 conv=notrunc 2>/dev/null
refused later 1 "is of another version of hakmem" profile "$work/later"
if [ "$(id -u)" = 0 ]; then
    chown 12345 "$board"
    refused foreign 1 "cannot be read: Operation not permitted" profile "$holder_pid"
    chown 0 "$board"
fi
killed
status=0
"$hakmem" growth "$holder_pid" 1 >/dev/null 2>"$work/ended.err" || status=$?
equal "an ended one cannot grow: $(cat "$work/ended.err")" "$status" 1
rm -f "$board"
hold HAKMEM_HEAP_PROFILE=on
name=meanwhile
look_for_growth 2
becomes "it has looked, and sleeps until the process has ended" is_stopped_between 2
exec 7>&-
wait "$holder_pid"
kill -CONT "$growth_pid"
status=0
wait "$growth_pid" || status=$?
equal "without a second profile" "$status $(cat "$work/meanwhile.err")" \
    "1 hakmem: growth: process $holder_pid ended meanwhile, and left no profile"

# The black box.
hold HAKMEM_BLACKBOX=on HAKMEM_PRICE=speed
for _ in 1 2; do echo >&7; done
await done 2
# The statistics are of the last interval: the first ones have no events.
turns=2
while ! "$hakmem" autopsy "$holder_pid" | grep -q 's before' && [ "$turns" -lt 60 ]; do
    turns=$((turns + 1))
    echo >&7
    await done "$turns"
    sleep 0.2
done
leaked_mib=$(awk -v turns="$turns" 'BEGIN { printf "%.1f", turns * 1e6 / 1048576 }')
killed
asked autopsy 0 autopsy "$holder_pid"
shows autopsy "^Process $holder_pid ended without a normal exit\.$"
shows autopsy "^Last update: 20[-0-9: ]* UTC$"
# What was kept long ago does not grow.
shows autopsy "^ +[78]\.[0-9] MiB +[0-9.]+% +$age +(\+[0-9.]+ [MG]iB|-)  yard::keep  holder"
leaks=$(awk '/yard::leak/ { print $1 }' "$work/autopsy.out")
check "what leaked, $leaks MiB, near $leaked_mib" awk -v a="$leaks" -v b="$leaked_mib" \
    'BEGIN { exit !(a > 0.85 * b && a < 1.15 * b) }'
shows autopsy '^resident '
shows autopsy '^Last events$'
shows autopsy '^ +[0-9.]+ s before  [a-z_]+ +[0-9]'
cp "/dev/shm/hakmem.profile.$holder_pid" "$work/blackbox"
asked copied 0 profile "$work/blackbox"
slowly piped "$work/blackbox" profile
check "the same through a pipe" cmp "$work/piped.out" "$work/copied.out"
asked autopsy_file 0 autopsy "$work/blackbox"
check "the file says the same" cmp "$work/autopsy_file.out" "$work/autopsy.out"
asked boxes 0 autopsy
board=/dev/shm/hakmem.profile.$holder_pid
shows boxes "^20[-0-9]+ [0-9:]+ UTC +$holder_pid  holder +$board\$"
asked named 0 autopsy holder
check "by its name" cmp "$work/named.out" "$work/autopsy.out"
cp "$holder" "$work/plain/holder"
asked beside 0 autopsy holder
check "by its name, beside the program" cmp "$work/beside.out" "$work/autopsy.out"
refused program 1 "is no heap profile" autopsy ./holder
rm "$work/plain/holder"
cp "$work/blackbox" "$work/plain/a.file.of.that.name"
asked near 0 autopsy a.file.of.that.name
check "a file without a slash" cmp "$work/near.out" "$work/autopsy.out"
rm "$work/plain/a.file.of.that.name"
refused nobody 1 "no program of that name left a black box" autopsy nobody.of.that.name

# A container is started again: its first process is number 1 again, and its /dev/shm may be the
# same. What the first one left stays, and is found from outside, with the container's own files.
if unshare --mount --pid --fork true 2>/dev/null; then
    mkdir "$work/image"
    cp "$holder" "$work/image/first"
    mkfifo "$work/first_in"
    cat >"$work/container.sh" <<'SH'
mount -t tmpfs shm /dev/shm && mount --bind "$1/image" "$1/plain" || exit 1
for turn in 1 2; do
    unshare --pid --fork env HAKMEM_BLACKBOX=on HAKMEM_HEAP_PROFILE_SAMPLES=0 \
        HAKMEM_HEAP_PROFILE_RATE=2048 LD_PRELOAD="$2" "$1/plain/first" \
        <"$1/first_in" >"$1/first_out" &
    outer=$!
    exec 7>"$1/first_in"
    until grep -q ready "$1/first_out" 2>/dev/null; do sleep 0.05; done
    kill -KILL $(cat "/proc/$outer/task/$outer/children")
    wait $outer
    rm "$1/first_out"
    exec 7>&-
done
echo over >"$1/container_over"
exec sleep 600
SH
    unshare --mount sh "$work/container.sh" "$work" "$PRELOAD_LIB" 2>/dev/null &
    container_pid=$!
    becomes "the containers are over" [ -e "$work/container_over" ]
    asked contained 0 autopsy
    shows contained ' 1  first +/proc/[0-9]+/ro[o]t/dev/shm/hakmem\.profile\.1$'
    shows contained ' 1  first +/proc/[0-9]+/ro[o]t/dev/shm/hakmem\.profile\.1\.last$'
    asked first 0 autopsy first
    shows first '^Process 1 ended without a normal exit'
    shows first '^ +[78]\.[0-9] MiB .* yard::keep  holder\.cpp:'
    kill -KILL "$container_pid"
fi

# The program of a process has replaced another one by exec, which left its board: that is not its.
HAKMEM_HEAP_PROFILE=on HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=1 \
    LD_PRELOAD="$PRELOAD_LIB" env -u LD_PRELOAD sleep 600 &
passer_pid=$!
is_sleep() { [ "$(cat "/proc/$passer_pid/comm")" = sleep ]; }
becomes "it sleeps" is_sleep
check "a board was left" [ -e "/dev/shm/hakmem.profile.$passer_pid" ]
refused replaced 1 "process $passer_pid has no heap profile" profile "$passer_pid"
kill -KILL "$passer_pid"
wait "$passer_pid" 2>/dev/null || :
rm -f "/dev/shm/hakmem.profile.$passer_pid"

# One whose parent has not asked for its end has ended.
mkfifo "$work/unasked_in"
env HAKMEM_BLACKBOX=on LD_PRELOAD="$PRELOAD_LIB" sh -c '"$0/holder" <"$0/unasked_in" & echo $!
    exec sleep 600' "$work" >"$work/unasked" &
parent_pid=$!
exec 7>"$work/unasked_in"
names_the_ready() { grep -q ready "$work/unasked" && grep -q '^[0-9]' "$work/unasked"; }
becomes "it is ready" names_the_ready
unasked_pid=$(sed '/ready/d' "$work/unasked")
kill -KILL "$unasked_pid"
becomes "it waits for its parent" grep -q '^State:.*Z' "/proc/$unasked_pid/status"
asked unasked 0 autopsy "$unasked_pid"
kill -KILL "$parent_pid"
rm -f "/dev/shm/hakmem.profile.$unasked_pid" "/dev/shm/hakmem.profile.$parent_pid"
shows unasked "^Process $unasked_pid ended without a normal exit"
refused no_box 1 "is a profile, not the file of a process" autopsy "$work/board.pprof"
refused usage 2 "autopsy: there is no option '--all'" autopsy --all
refused growth_usage 2 "usage: hakmem growth" growth 1
refused growth_pace 2 "SECONDS is 0.1 to 86400 seconds, such as 30 or 30s, not 'x'" growth 1 x
refused growth_two 2 "growth: unexpected argument '2'" growth 1 30 2
refused growth_most 2 "--most takes a size" growth 1 1 --most x
