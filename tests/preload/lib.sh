# SPDX-License-Identifier: MIT
# tests/preload/lib.sh - sourced by the scripts here: run a command without and with hakmem,
# compare, and read the statistics that hakmem left.
#
# Every command runs in a folder of its own ($work/plain or $work/preloaded), with a time limit and
# without input. What it said is in $work/NAME.plain.* and $work/NAME.*; the statistics of all its
# processes are in $work/NAME.stats. A script that ends well without having checked anything fails.

set -eu
: "${PRELOAD_LIB:?says where libhakmem.so is}"
tests=$(cd "$(dirname "$0")" && pwd)
limit_s=${limit_s:-600}
check_count=0

# Nothing of the caller's settings reaches the programs.
for variable in $(env | sed -n 's/^\(HAKMEM_[A-Za-z0-9_]*\)=.*/\1/p'); do
    unset "$variable"
done
unset LD_PRELOAD
LC_ALL=C
export LC_ALL
umask 022

work=$(mktemp -d "${TMPDIR:-/tmp}/preload.XXXXXX")
mkdir "$work/plain" "$work/preloaded"

# What a script wants undone at its end, too, goes into its own at_end.
at_end() { :; }
finish() {
    status=$?
    trap - EXIT
    at_end
    if [ -n "${server:-}" ]; then
        kill -TERM "$server" 2>/dev/null || :
        wait "$server" || :
    fi
    cd /
    rm -rf "$work"
    if [ "$status" = 0 ] && [ "$check_count" = 0 ]; then
        echo "no check was made"
        status=1
    fi
    exit "$status"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "FAILED: $*"
    tell || :
    exit 1
}

# tell: how the last command ended without and with hakmem, what it said last on stderr, and where
# its outputs differ. A log of a failure is often all that is left of it.
tell() {
    [ -n "${name:-}" ] || return 0
    for how in .plain ''; do
        said=$work/$name$how
        [ ! -e "$said.status" ] ||
            echo "$name$how: exit status $(cat "$said.status") (124: after $limit_s s)"
        for end in out err; do
            [ ! -s "$said.$end" ] || echo "$name$how: std$end ends:"
            [ ! -s "$said.$end" ] || tail -n 15 "$said.$end" | cut -c1-300
        done
    done
    if [ -e "$work/$name.plain.out" ] && [ -e "$work/$name.out" ]; then
        echo "$name: stdout, plain and on hakmem:"
        diff -a "$work/$name.plain.out" "$work/$name.out" | head -n 20 | cut -c1-300
    fi
}

skip() {
    echo "skipped: $*"
    exit 77
}

needs() {
    for program; do
        command -v "$program" >/dev/null || skip "no $program"
    done
}

# check SENTENCE COMMAND...: the sentence is true if the command ends well.
check() {
    sentence=$1
    shift
    check_count=$((check_count + 1))
    "$@" || fail "$sentence ($*)"
}

# equal SENTENCE LEFT RIGHT
equal() {
    check_count=$((check_count + 1))
    [ "$2" = "$3" ] || fail "$1: \"$2\" is not \"$3\""
}

# plainly NAME COMMAND...: without hakmem.
plainly() {
    name=$1
    shift
    status=0
    (cd "$work/plain" && exec timeout "$limit_s" "$@") </dev/null \
        >"$work/$name.plain.out" 2>"$work/$name.plain.err" || status=$?
    echo "$status" >"$work/$name.plain.status"
}

# preloaded NAME COMMAND...: with hakmem, which appends its statistics to $work/NAME.stats. The
# command comes after `timeout` and `env`, which do not run on hakmem.
preloaded() {
    name=$1
    shift
    status=0
    (cd "$work/preloaded" && exec timeout "$limit_s" env LD_PRELOAD="$PRELOAD_LIB" \
        HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/$name.stats" "$@") </dev/null \
        >"$work/$name.out" 2>"$work/$name.err" || status=$?
    echo "$status" >"$work/$name.status"
}

# server NAME LIBRARY COMMAND...: starts a server, with LIBRARY preloaded unless it is empty. Its
# process is $server_process. It ends with this script, or after the time limit.
server() {
    name=$1
    library=$2
    shift 2
    timeout -k 5 "$limit_s" env LD_PRELOAD="$library" HAKMEM_STATS=raw \
        HAKMEM_STATS_FILE="$work/$name.stats" "$@" \
        >"$work/$name.out" 2>"$work/$name.err" </dev/null &
    server=$!
    server_name=$name
    becomes "$name starts" has_started
    server_process=$(cat "/proc/$server/task/$server/children")
    server_process=${server_process% }
}
# Behind `timeout` and `env`.
has_started() {
    started=$(cat "/proc/$server/task/$server/children") || return 1
    [ -n "$started" ] && [ "$(cat "/proc/${started% }/comm")" != env ] &&
        [ "$(cat "/proc/${started% }/comm")" != timeout ]
}

# becomes SENTENCE COMMAND...: the sentence comes true within two minutes.
becomes() {
    sentence=$1
    shift
    tries=0
    until "$@" >"$work/becomes" 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || fail "$sentence ($*): $(tail -n 5 "$work/becomes")"
        sleep 0.1
    done
}

# listens SOCKET: somebody accepts there. (The file exists a moment before.)
listens() {
    python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$1"
}

# processes PROCESS: it and all that it started.
processes() {
    echo "$1"
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        processes "$child"
    done
}

# mapped: hakmem is mapped in the server and in all processes that it started.
mapped() {
    check "$server_name: hakmem is mapped" grep -q libhakmem "/proc/$server_process/maps"
    for process in $(processes "$server_process"); do
        # One that has just ended maps nothing.
        cat "/proc/$process/maps" >"$work/maps" 2>/dev/null || :
        [ ! -s "$work/maps" ] || check "$server_name: hakmem is mapped in all processes" \
            grep -q libhakmem "$work/maps"
    done
}

# ends [SIGNAL]: the server ends well, when it got the signal.
ends() {
    [ $# = 0 ] || kill -"$1" "$server_process"
    status=0
    wait "$server" || status=$?
    server=
    equal "$server_name ends well: $(tail -n 5 "$work/$server_name.err")" "$status" 0
    check "$server_name: hakmem says nothing" \
        [ "$(cat "$work/$server_name.out" "$work/$server_name.err" | grep -ci hakmem)" = 0 ]
}

# counter NAME COUNTER: its sum over the processes of a command.
counter() {
    awk -v name="$2:" '$1 == name { sum += $2 } END { printf "%.0f\n", sum }' "$work/$1.stats"
}

# served NAME: hakmem served the command's processes, alone, and no pointer came from elsewhere.
served() {
    check "$1: hakmem left statistics" [ -s "$work/$1.stats" ]
    check "$1: hakmem served" [ "$(counter "$1" threads_started)" -ge 1 ]
    check "$1: hakmem filled bins" [ "$(counter "$1" refills)" -gt 0 ]
    equal "$1: no request went to another allocator" "$(counter "$1" fallback)" 0
    equal "$1: every pointer was hakmem's" "$(counter "$1" foreign_frees)" 0
}

# served_hardened NAME: hakmem served, and no free filled a bin, as in hardened mode.
served_hardened() {
    check "$1: hakmem served" [ "$(counter "$1" fresh_slabs)" -gt 0 ]
    equal "$1: no bin was filled" "$(sed -n 's/^flushes: //p' "$work/$1.stats" | sort -u)" 0
}

# reports NAME: how many processes left statistics.
reports() { grep -c '^threads_started:' "$work/$1.stats"; }

# full: the long tests are wanted.
full() { [ -n "${HAK_FULL:-}" ]; }

# quiet NAME: nothing was added to what the command says on stderr.
quiet() {
    check "$1: stderr is the same, `head -c 300 "$work/$1.err"`" \
        cmp -s "$work/$1.plain.err" "$work/$1.err"
}

# same NAME COMMAND...: output, errors and exit status are those without hakmem, which served.
same() {
    plainly "$@"
    preloaded "$@"
    name=$1
    equal "$name: the exit status" "$(cat "$work/$name.status")" "$(cat "$work/$name.plain.status")"
    quiet "$name"
    check "$name: stdout is the same" cmp -s "$work/$name.plain.out" "$work/$name.out"
    served "$name"
}

# well NAME COMMAND...: the same, and the command ends well and says nothing on stderr.
well() {
    same "$@"
    equal "$1: ends well, $(head -c 300 "$work/$1.err")" "$(cat "$work/$1.status")" 0
    check "$1: says nothing on stderr" [ ! -s "$work/$1.err" ]
}

# alike NAME SETTING COMMAND...: it ends, and prints, with a setting of hakmem as without hakmem.
alike() {
    name=$1
    setting=$2
    shift 2
    plainly "$name" "$@"
    preloaded "$name" env "$setting" "$@"
    equal "$name: exit status" "$(cat "$work/$name.status")" "$(cat "$work/$name.plain.status")"
    check "$name: output" cmp "$work/$name.out" "$work/$name.plain.out"
}

# own_programs SETTING PROGRAM...: with the setting, too, they end well: whether fork, exec,
# threads, handlers, private heaps and the C++ forms work as they do elsewhere.
own_programs() {
    setting=$1
    shift
    for name; do
        status=0
        env "$setting" LD_PRELOAD="$PRELOAD_LIB" timeout "$limit_s" "$OUT/tests/${name}_preload" \
            >"$work/$name.out" 2>"$work/$name.err" || status=$?
        echo "$status" >"$work/$name.status"
        equal "$name with $setting: $(tail -n 3 "$work/$name.err")" "$status" 0
    done
}

# caches_belong_to processor|thread: as HAKMEM_CACHES, which this exports, says; if not, there are
# no caches by processor here.
caches_belong_to() {
    HAKMEM_CACHES=$1
    export HAKMEM_CACHES
    preloaded caches true
    reason=$(counter caches rseq_reason)
    rm "$work/caches.stats"
    if [ "$1" = thread ]; then
        equal "caches belong to threads" "$reason" 1
    elif [ "$reason" != 0 ]; then
        echo "caches by processor are not tested: $reason"
        return 1
    fi
}

# told STATUS COMMAND...: the command, which tries $way, ends so; what it said is in $work/said, but
# for the shell's own words about how it ended.
told() {
    wanted=$1
    shift
    status=0
    timeout "$limit_s" "$@" 2>"$work/all" || status=$?
    grep -vE '^(Segmentation fault|Aborted)' "$work/all" >"$work/said" || :
    equal "$way: the exit status, $(head -n 3 "$work/said")" "$status" "$wanted"
    line=0
}
# says REGULAR_EXPRESSION: the next line.
says() {
    line=$((line + 1))
    check "$way, line $line: $(cat "$work/said")" grep -qxE "hakmem: $1" <<TEXT
$(sed -n "${line}p" "$work/said")
TEXT
}
# no_more [TEXT]: nothing but the text follows.
no_more() { equal "$way: no more lines" "$(tail -n +$((line + 1)) "$work/said")" "${1:-}"; }
# resolves FUNCTION LINE: addr2line finds the function by the first place of that line.
resolves() {
    command -v addr2line >/dev/null || return 0
    place=$(sed -n "${2}p" "$work/said" | sed 's/.* at \([^ ]*\).*/\1/; s/^hakmem: at //')
    equal "$way: $place" "$(addr2line -f -e "${place%+*}" "${place##*+}" | head -n 1)" "$1"
}
