# SPDX-License-Identifier: MIT
# `hakmem doctor`: what it says of the machine is what the kernel says, and of a process which
# allocator serves it. If this fails, people change the wrong settings.
. "$(dirname "$0")/lib.sh"
needs sh sed cat sleep

asked machine 0 doctor
check "each line is a finding" \
    [ -z "$(grep -vE '^(ok   |note |fix  ) [A-Z].*[.a-z)]$|^(ok|note|fix) +[a-z].*\.$' \
        "$work/machine.out")" ]
shows machine "vm\.max_map_count is $(cat /proc/sys/vm/max_map_count)"
shows machine "vm\.overcommit_memory is $(cat /proc/sys/vm/overcommit_memory)"
check "nothing on stderr" [ ! -s "$work/machine.err" ]
(ulimit -v 4000000 && exec "$hakmem" doctor) >"$work/limited.out" || fail "with a limit"
shows limited '^note +ulimit -v is 3\.8 GiB: '
HAKMEM_DECAY=3s MALLOC_ARENA_MAX=2 "$hakmem" doctor >"$work/set.out" || fail "with settings"
shows set '1 option is set here'
shows set 'MALLOC_ARENA_MAX is set: hakmem does not read it'

# Settings decide before the machine does.
HAKMEM_CACHES=thread "$hakmem" doctor >"$work/chosen.out" || fail "with caches of threads"
shows chosen '^note +rseq: thread, .*option caches=thread\.$'
for setting in HAKMEM_MODE=hardened HAKMEM_FENCE=all HAKMEM_STATS=exact; do
    env "$setting" "$hakmem" doctor >"$work/watched.out" || fail "with $setting"
    shows watched '^note +rseq: thread, '
done

# The process has become a program named sleep, and has mapped its libraries: libc is the last.
awaited() {
    becomes "it runs" grep -q sleep "/proc/$process/comm"
    becomes "it has its libraries" grep -q '/libc[.-]' "/proc/$process/maps"
}

# of NAME [STATUS]: what it says of the process $process, which is stopped then.
process=
at_end() { [ -z "$process" ] || kill "$process" 2>/dev/null || :; }
stopped() {
    kill "$process" 2>/dev/null || :
    wait "$process" 2>/dev/null || :
    rm -f "/dev/shm/hakmem.$process"
    process=
}
of() {
    awaited
    asked "$1" "${2:-0}" doctor "$process"
    stopped
}
"$hakmem" run -o decay=9s sleep 600 &
process=$!
of preloaded
shows preloaded '^process [0-9]+ \(sleep\)$'
shows preloaded '^ok +hakmem serves malloc: /.*libhakmem\.so.* is mapped\.$'
shows preloaded 'It was started with HAKMEM_DECAY=9s\.'
shows preloaded '^note +[0-9.]+ [KM]iB resident, .* 1 thread\.$'
shows preloaded '^ok +[0-9]+ of [0-9]+ mappings are used\.$'
sleep 600 &
process=$!
of plain 1
shows plain "^no +The C library's malloc serves; "
check "it does not serve there" [ -z "$(grep 'hakmem serves' "$work/plain.out")" ]

# Whose malloc it is, the program's file and the loader's order say, not what is mapped.
of_waiting() {
    process=$!
    becomes "it waits" grep -q preload_own "/proc/$process/comm"
    becomes "it has its libraries" grep -q '/libc[.-]' "/proc/$process/maps"
    asked "$1" 1 doctor "$process"
    stopped
}
"$hakmem" run "$OUT/tests/preload_own_malloc" wait 2>/dev/null &
of_waiting own
shows own '^no +hakmem is mapped but serves nothing: the program defines malloc itself\.$'
check "nothing else is claimed" [ -z "$(grep 'hakmem serves' "$work/own.out")" ]
"$OUT/tests/preload_own_malloc" wait &
of_waiting own_plain
shows own_plain '^no +The program defines malloc itself: hakmem cannot take its place\.$'
check "there is a C compiler, or nothing to test" command -v cc
echo 'static _Alignas(16) char arena[1 << 20];
    static unsigned long used;
    void *malloc(unsigned long bytes) { return arena + (used += bytes / 16 * 16 + 16); }
    void free(void *p) { (void)p; }' >"$work/first.c"
cc -shared -fPIC -fno-builtin -o "$work/libfirst.so" "$work/first.c"
LD_PRELOAD=$work/libfirst.so:$PRELOAD_LIB sleep 600 &
process=$!
of behind 1
shows behind '^no +hakmem is mapped but serves nothing: /.*/libfirst\.so comes before it\.$'
LD_PRELOAD=$PRELOAD_LIB:$work/libfirst.so sleep 600 &
process=$!
of before
shows before '^ok +hakmem serves malloc: '
cp "$PRELOAD_LIB" "$work/libhakmem.so.9"
LD_PRELOAD=$work/libhakmem.so.9 sleep 600 &
process=$!
awaited
rm "$work/libhakmem.so.9"
of replaced
shows replaced 'That file has been replaced since: restart the process to use the new one\.'
LD_PRELOAD=/no/such/libhakmem.so sleep 600 2>/dev/null &
process=$!
of missing 1
shows missing '^fix +LD_PRELOAD names hakmem, but it is not mapped: '
"$OUT/thread_sleep_hakmem" 1 1 1 600000 >/dev/null 2>&1 &
process=$!
of linked
shows linked '^ok +hakmem serves malloc: it is linked into the program\.$'
asked itself 1 doctor $$

# A process has the name that it gives itself: it forges no line, and nothing gets to the terminal.
mkfifo "$work/forger"
# shellcheck disable=SC2016
sh -c 'printf "a)\nok all\033[2J" >/proc/$$/comm; echo named >"$0/named"; read -r line' "$work" \
    <"$work/forger" &
process=$!
exec 5>"$work/forger"
becomes "it has its name" [ -s "$work/named" ]
asked forged 1 doctor "$process"
stopped
exec 5>&-
shows forged "^process [0-9]+ \\(a\\)\\\\nok all\\?\\[2J\\)\$"
check "no line is forged" [ -z "$(grep '^ok all' "$work/forged.out")" ]
check "it is plain: $(od -c "$work/forged.out" | head -n 3)" \
    [ -z "$(LC_ALL=C grep '[^ -~]' "$work/forged.out")" ]

# $process has published its numbers, whole.
published_whole() {
    becomes "it publishes" [ -e "/dev/shm/hakmem.$process" ]
    becomes "what it publishes is whole" "$hakmem" top --json "$process"
}

# What a process publishes: whose its caches are, and why.
# published NAME SETTING...
published() {
    name=$1
    shift
    env HAKMEM_STATS_SHM=1 "$@" LD_PRELOAD="$PRELOAD_LIB" sleep 600 &
    process=$!
    published_whole
    asked "$name" 0 doctor "$process"
    stopped
}
published threads HAKMEM_CACHES=thread
shows threads '^note +rseq: thread, option caches=thread\.$'

# Programs that show a title of their own overwrite their environment, so it does not say what was
# preloaded: redis does, and is linked with jemalloc.
echo '#include <string.h>
    #include <sys/prctl.h>
    #include <unistd.h>
    extern char **environ;
    void *malloc(unsigned long bytes);
    int main(void)
    {
        char *last = environ[0];
        for (char **at = environ; *at; at++)
            last = *at;
        char *volatile kept = malloc(10);
        memset(environ[0], 0, (unsigned long)(last + strlen(last) - environ[0]));
        prctl(PR_SET_NAME, "titled");
        return kept ? (int)sleep(600) : 1;
    }' >"$work/titled.c"
cc -fno-builtin -o "$work/server" "$work/titled.c" -Wl,--no-as-needed -L"$work" -lfirst
# titled NAME SETTING...
titled() {
    name=$1
    shift
    env "$@" LD_PRELOAD="$PRELOAD_LIB" LD_LIBRARY_PATH="$work" "$work/server" &
    process=$!
    becomes "it is titled" grep -q titled "/proc/$process/comm"
    [ "$#" = 0 ] || published_whole
    asked "$name" 0 doctor "$process"
    stopped
}
titled title
check "nothing is claimed" [ -z "$(grep -e 'serves malloc' -e 'serves nothing' "$work/title.out")" ]
shows title '^note +/.*libhakmem.* is unknown, .* HAKMEM_STATS_SHM=1 shows it\.$'
titled published_title HAKMEM_STATS_SHM=1
shows published_title '^ok +hakmem serves malloc: '

sh -c 'exit 0' &
gone=$!
wait "$gone"
refused gone 1 "there is no process $gone" doctor "$gone"
refused word 2 "'abc' is not a process id" doctor abc
refused zero 2 "'0' is not" doctor 0
refused negative 2 "'-1' is not" doctor -1
refused long 2 "is not a process id" doctor 99999999999999999999
refused two 2 "doctor: unexpected argument '2'" doctor 1 2
if [ -r /proc/2/comm ] && [ ! -s /proc/2/maps ] && [ "$(cat /proc/2/comm)" = kthreadd ]; then
    refused kernel 1 "is a kernel thread" doctor 2
fi
