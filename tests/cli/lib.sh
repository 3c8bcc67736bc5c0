# SPDX-License-Identifier: MIT
# tests/cli/lib.sh - sourced by the scripts here: the command, what it says, how it ends.
. "$(dirname "$0")/../preload/lib.sh"
hakmem=$OUT/hakmem
[ -x "$hakmem" ] || fail "$hakmem is not built"

# asked NAME STATUS ARGUMENT...: hakmem ends so; $work/NAME.out and .err are what it said.
asked() {
    name=$1
    expected=$2
    shift 2
    status=0
    (cd "$work/plain" && exec timeout "$limit_s" "$hakmem" "$@") \
        >"$work/$name.out" 2>"$work/$name.err" </dev/null || status=$?
    equal "$name: exit status, $(head -c 300 "$work/$name.err")" "$status" "$expected"
}

# refused NAME STATUS WORDS ARGUMENT...: one line on stderr, with these words, and nothing else.
refused() {
    words=$3
    refused_name=$1
    refused_status=$2
    shift 3
    asked "$refused_name" "$refused_status" "$@"
    equal "$name: one line, $(cat "$work/$name.err")" "$(wc -l <"$work/$name.err")" 1
    check "$name: it begins with hakmem:" grep -q '^hakmem: ' "$work/$name.err"
    check "$name: says '$words', $(cat "$work/$name.err")" grep -qF -- "$words" "$work/$name.err"
    check "$name: nothing on stdout" [ ! -s "$work/$name.out" ]
}

# Whether the process sleeps with $work/slow open, or has ended.
has_opened_slow() {
    case $(sed 's/.*) //; s/ .*//' "/proc/$1/stat") in
    S) find "/proc/$1/fd" -lname "$work/slow" | grep -q . ;;
    [DR]) false ;;
    esac
}

# slowly NAME FILE ARGUMENT...: hakmem reads $work/slow, a pipe that is open long before the file is
# written to it, and ends well.
slowly() {
    name=$1
    file=$2
    shift 2
    [ -p "$work/slow" ] || mkfifo "$work/slow"
    exec 8<>"$work/slow"
    "$hakmem" "$@" "$work/slow" >"$work/$name.out" 2>"$work/$name.err" </dev/null 8>&- &
    reader=$!
    becomes "$name: it waits for the pipe" has_opened_slow "$reader"
    cat "$file" >&8 2>/dev/null &
    exec 8>&-
    status=0
    wait "$reader" || status=$?
    equal "$name: exit status, $(head -c 300 "$work/$name.err")" "$status" 0
}

# shows NAME PATTERN: a line on stdout matches.
shows() {
    check "$1 shows $2: $(head -n 30 "$work/$1.out")" grep -qE -- "$2" "$work/$1.out"
}
