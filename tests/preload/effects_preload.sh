# SPDX-License-Identifier: MIT
# Each option does something: two values of it, and a number of the statistics that differs; or the
# test that shows what it does. If this fails, people set options that change nothing.
. "$(dirname "$0")/lib.sh"
needs awk sed

# differs OPTION SHAPE LESS MORE COUNTER TIMES: the counter is so many times as large with the
# second value; both are without what the option would learn.
differs() {
    option=$1
    variable=HAKMEM_$(echo "$option" | tr '[:lower:]' '[:upper:]')
    for value in "$3" "$4"; do
        preloaded "$option" env HAKMEM_MAINTENANCE=off HAKMEM_LEARN=none $extra \
            "$variable=$value" "$OUT/tests/preload_effects" "$2"
        equal "$option=$value ends well: $(cat "$work/$option.err")" \
            "$(cat "$work/$option.status")" 0
        counter "$option" "$5" >"$work/$option.$value"
        rm "$work/$option.stats"
    done
    less=$(cat "$work/$option.$3")
    more=$(cat "$work/$option.$4")
    check "$option=$3: $5 is $less, with $4 $more: not $6 times as much" \
        awk "BEGIN { exit !($more >= $less * $6 && $more > 0) }"
}

# shown OPTION FILE...: these tests set it, and fail without its effect.
shown() {
    option=$1
    shift
    for file; do
        check "$option: tests/$file is there" [ -e "$tests/../$file" ]
        check "$option: tests/$file names it" grep -qiE "(HAKMEM_|CONF_|[^a-z_])$option\>" \
            "$tests/../$file"
    done
}

rows() {
    extra=
    differs big_cache c 1T 0 purged_bytes 100
    differs free_policy p keep batch purged_bytes 100
    differs decay p never 10ms purged_bytes 1.5 # superslabs go back whole: ten, and twenty or 21
    differs thread_cache s 256M 64K flushes 1.3
    extra=HAKMEM_DECAY=10ms
    differs retain m 1T 0 purged_bytes 1.2
    extra=HAKMEM_HARDEN=quarantine
    differs quarantine s 0 64M class_208_cached_blocks 150
    extra=
    shown mode preload/modes_preload.sh
    shown price preload/modes_preload.sh
    shown stats preload/stats_file_preload.sh
    shown stats_file preload/stats_file_preload.sh
    shown stats_interval preload/stats_file_preload.sh
    shown stats_signal preload/stats_file_preload.sh
    shown stats_shm preload/ctl_preload.py
    shown heap_profile preload/leaks_preload.sh
    shown heap_profile_rate preload/leaks_preload.sh
    shown heap_profile_samples preload/leaks_preload.sh
    shown blackbox cli/blackbox_cli.sh
    shown crash_report preload/crash_preload.sh
    shown foreign preload/surface.c
    shown deepbind preload/dlopen.c
    shown prewarm preload/prewarm.c
    shown limit preload/held.c
    shown soft_limit preload/held.c
    shown caches preload/rseq.c
    shown thp preload/thp_preload.sh
    shown maintenance preload/idle.c
    shown harden attack/hardened.h
    shown guard_rate preload/guard_hit_preload.sh
    shown learn preload/learned_preload.sh
    shown fence preload/fence_preload.sh
    shown zero_size unit/api/malloc_test.c
    shown fence_side preload/fence_preload.sh
    shown fence_alignment attack/fenced.h
    shown fence_quarantine unit/misuse/fence_test.c
    shown profile preload/learned_preload.sh
}
rows
tried=$(sed -n 's/^    \(differs\|shown\) \([a-z_]*\) .*/\2/p' "$0" | sort)
equal "all options" "$tried" "$("$OUT/hakmem" options --json |
    sed -n 's/^{"name": "\([a-z_]*\)".*/\1/p' | sort)"
