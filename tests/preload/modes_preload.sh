# SPDX-License-Identifier: MIT
# Modes and prices reach a program as SHOW_CONF says, and the default mode pays nothing for what it
# has and `minimal` has not: the same instructions within 1 %, counted by valgrind. If this fails,
# a feature has found its way onto the path that everybody takes.
. "$(dirname "$0")/lib.sh"
needs valgrind ls

# shown SETTING...: what is in force with them.
shown() {
    env "$@" HAKMEM_SHOW_CONF=1 LD_PRELOAD="$PRELOAD_LIB" ls / 2>&1 >/dev/null |
        sed -n 's/^hakmem: //p'
}
for mode in minimal fast balanced learning research hardened fence realtime; do
    equal "$mode is a mode" "$(shown HAKMEM_MODE=$mode HAKMEM_STATS=off | grep '^mode=')" \
        "mode=$mode (environment)"
done
equal "balanced is the default, and all that it says" \
    "$(shown | grep -v '(built-in)$')$(shown | grep '^mode=')" "mode=balanced (built-in)"
check "a mode sets options" [ "$(shown HAKMEM_MODE=minimal | grep -c '(mode)$')" -ge 2 ]
equal "an explicit setting wins over the mode" \
    "$(shown HAKMEM_MODE=minimal HAKMEM_THP=auto | grep '^thp=')" "thp=auto (environment)"
check "a price sets options" [ "$(shown HAKMEM_PRICE=compact | grep -c '(price)$')" -ge 2 ]

# instructions SETTING...: of a run of 10^6 pairs of malloc and free, the start not among them.
instructions() {
    for cycles in 20000 520000; do
        env "$@" valgrind --tool=callgrind --callgrind-out-file=/dev/null \
            "$OUT/bench_random_mixed_hakmem" "$cycles" 2000 42 2>&1 |
            sed -n 's/.*Collected : *//p'
    done | paste -s -d' ' | awk '{ print $2 - $1 }'
}
[ -x "$OUT/bench_random_mixed_hakmem" ] || skip "the benchmarks are not built"
minimal=$(instructions HAKMEM_MODE=minimal)
check "instructions were counted" [ "$minimal" -gt 1000000 ]
for mode in balanced fast learning; do
    set -- HAKMEM_MODE=$mode
    # Call sites are sampled so often a second, and valgrind makes few instructions in one.
    [ $mode != learning ] || set -- "$@" HAKMEM_LEARN=big_cache+decay+matches
    count=$(instructions "$@")
    echo "$mode: $count instructions, minimal: $minimal"
    check "$mode takes at most 1 % more instructions than minimal: $count, $minimal" \
        [ $((count * 100)) -le $((minimal * 101)) ]
done
