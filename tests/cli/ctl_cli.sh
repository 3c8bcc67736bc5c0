# SPDX-License-Identifier: MIT
# `hakmem ctl` and `hakmem ps`: what is wrong is said in one line and in time; a process that maps
# hakmem is listed with whose malloc it calls. If this fails, a wrong process is asked, or people
# believe that hakmem serves where it does not.
. "$(dirname "$0")/lib.sh"
needs sleep awk

refused ctl_none 2 "usage: hakmem ctl" ctl
refused ctl_word 2 "ctl: 'abc' is not a process id" ctl abc trim
refused ctl_zero 2 "ctl: '0' is not a process id" ctl 0 trim
refused ctl_nothing 2 "trim, dump, set or profile, not 'nothing'" ctl 1
refused ctl_other 2 "trim, dump, set or profile, not 'sing'" ctl 1 sing
refused ctl_two 2 "ctl: one request at a time, not also 'dump'" ctl 1 trim dump
refused ctl_set 2 "ctl: set takes NAME=VALUE, not 'nothing'" ctl 1 set
refused ctl_value 2 "ctl: set takes NAME=VALUE, not 'decay'" ctl 1 set decay
refused ctl_name 2 "there is no option 'deca'; the nearest is decay" ctl 1 set deca=1
refused ctl_profile 2 "ctl: profile takes on or off, not 'maybe'" ctl 1 profile maybe
refused ctl_wait 2 "ctl: --wait takes 1 to 3600 seconds, not '0'" ctl --wait 0 1 trim
refused ctl_wait_last 2 "ctl: --wait takes 1 to 3600 seconds, not 'nothing'" ctl 1 trim --wait
refused ctl_absent 1 "ctl: there is no process 999999999" ctl 999999999 trim
refused ctl_behind 1 "ctl: there is no process 999999999" ctl 999999999 --wait 3 trim --later
refused ctl_plain 1 "is not served by hakmem: it does not map it" ctl $$ trim
refused ps_word 2 "ps: unexpected argument 'all'" ps all

process=
at_end() { [ -z "$process" ] || kill $process 2>/dev/null || :; }
"$hakmem" run sleep 600 &
preloaded=$!
"$hakmem" run "$OUT/tests/preload_own_malloc" wait 2>/dev/null &
own=$!
"$OUT/larson_hakmem" 600 8 64 100 1 1 1 >/dev/null 2>&1 &
linked=$!
sleep 601 &
plain=$!
HAKMEM_STATS_SHM=1 "$hakmem" run sleep 600 &
shown=$!
process="$preloaded $own $linked $plain $shown"
# runs PROCESS NAME: it has become a program of that name, and has mapped its libraries: libc is the
# last.
runs() {
    becomes "$2 runs" grep -qx "$2" "/proc/$1/comm"
    becomes "$2 has its libraries" grep -q '/libc[.-]' "/proc/$1/maps"
}
runs "$preloaded" sleep
runs "$own" preload_own_mal
runs "$linked" larson_hakmem
runs "$plain" sleep
becomes "the numbers are shown, whole" "$hakmem" top --json "$shown"
asked listed 0 ps
equal "the head" "$(awk 'NR == 1 { print $1, $2, $3, $4, $5 }' "$work/listed.out")" \
    "PID NAME RESIDENT LIVE ALLOCATOR"
row() { sed -n "s/^ *$1  *\([^ ]*\)  *[^ ]*  *\(.*\)/\1 \2/p" "$work/listed.out" | tr -s ' '; }
equal "a preloaded one" "$(row "$preloaded")" "sleep - hakmem"
equal "one with its own malloc" "$(row "$own")" \
    "preload_own_mal - not hakmem: the program's own malloc"
equal "a linked one" "$(row "$linked")" "larson_hakmem - hakmem (linked)"
equal "one without hakmem" "$(row "$plain")" ""
check "one that shows its numbers: $(row "$shown")" \
    sh -c 'echo "$0" | grep -qE "^sleep [0-9.]+K? hakmem$"' "$(row "$shown")"
refused ctl_own 1 "is not served by hakmem: the program defines malloc itself" ctl "$own" trim
asked as_json 0 ps --json
shows as_json "\"pid\": $own, .*\"is_served\": false, \"allocator\": \"not hakmem: "
shows as_json "\"pid\": $preloaded, .*\"live_bytes\": null, \"is_served\": true, "
