#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh corpus|search TARGET - one fuzz target over the inputs of the repository, or over new ones
# for HAK_FUZZ_SECONDS (10; with HAK_FULL 600). What is found new stays in $OUT/corpus for the next
# time, and an input that fails in $OUT/found: copied to tests/fuzz/corpus/TARGET it is a test.
set -eu
how=$1
name=$2
kept=$(cd "$(dirname "$0")" && pwd)/corpus/$name
program=$OUT/${name}_fuzz
export UBSAN_OPTIONS=print_stacktrace=1

if [ "$how" = corpus ]; then
    count=$(ls "$kept" | wc -l)
    [ "$count" -gt 0 ] || { echo "no inputs in $kept"; exit 1; }
    "$program" -detect_leaks=0 -close_fd_mask=2 "$kept"/* >"$OUT/$name.corpus" 2>&1 ||
        { tail -n 60 "$OUT/$name.corpus"; exit 1; }
    ran=$(grep -c '^Executed' "$OUT/$name.corpus") || true
    echo "$ran inputs"
    [ "$ran" = "$count" ]
    exit
fi

default=10
[ -z "${HAK_FULL:-}" ] || default=600
mkdir -p "$OUT/corpus/$name" "$OUT/found"
"$program" -max_total_time="${HAK_FUZZ_SECONDS:-$default}" -max_len=500 -timeout=100 \
    -rss_limit_mb=4096 -detect_leaks=0 -close_fd_mask=2 -print_final_stats=1 \
    -artifact_prefix="$OUT/found/$name-" "$OUT/corpus/$name" "$kept" >"$OUT/$name.log" 2>&1 ||
    { tail -n 60 "$OUT/$name.log"; exit 1; }
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$OUT/$name.log")
echo "$runs inputs"
[ "${runs:-0}" -gt 0 ]
