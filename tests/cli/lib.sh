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

# shows NAME PATTERN: a line on stdout matches.
shows() {
    check "$1 shows $2: $(head -n 30 "$work/$1.out")" grep -qE -- "$2" "$work/$1.out"
}
