# SPDX-License-Identifier: MIT
# bench/programs/lib.sh - sourced by the scripts here: a real program, with an allocator preloaded.
#
# BENCH_PRELOAD is the library to preload, empty for none; only the measured program gets it. A
# script ends with 77 and a reason if the program is not there, and prints `operations:`, `time:`
# and `throughput:` as the workloads do. The line `# packages:` of a script names the Debian
# packages that it needs.
set -eu
BENCH_PRELOAD=${BENCH_PRELOAD:-}
LC_ALL=C
export LC_ALL
unset LD_PRELOAD
work=$(mktemp -d "${TMPDIR:-/tmp}/programs.XXXXXX")
at_end() { :; }
finish() {
    status=$?
    trap - EXIT
    at_end
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

needs() {
    for program; do
        command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
    done
}

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

with_allocator() { env ${BENCH_PRELOAD:+"LD_PRELOAD=$BENCH_PRELOAD"} "$@"; }

start_clock() { start_ns=$(date +%s%N); }

# measured COMMAND...: its output goes to $work/out.
measured() {
    start_clock
    with_allocator "$@" >"$work/out" </dev/null || fail "$1 ended with status $?"
    stop_clock
}

stop_clock() { elapsed_ns=$(($(date +%s%N) - start_ns)); }

# says TEXT: the last line of the measured program's output.
says() {
    last=$(tail -n 1 "$work/out")
    [ "$last" = "$1" ] || fail "the program ends with \"$last\" instead of \"$1\""
}

# throughput OPERATIONS: the end of a script.
throughput() {
    awk -v count="$1" -v ns="$elapsed_ns" 'BEGIN {
        rate = count / ns * 1000
        printf "operations: %d\ntime: %.6f s\n", count, ns * 1e-9
        printf(rate < 0.1 ? "throughput: %.6f M ops/s\n" : "throughput: %.2f M ops/s\n", rate)
    }'
}
