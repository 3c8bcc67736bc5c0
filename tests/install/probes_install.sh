# SPDX-License-Identifier: MIT
# Probes: each counter of slow paths and each event can be traced by its name, in the library and
# in programs that are linked with hakmem; the hot path has none. If this fails, bpftrace and perf
# find nothing to look at.
. "$(dirname "$0")/lib.sh"
needs readelf
src=$tests/../../src
readelf -S "$OUT/libhakmem.so" | grep -q stapsdt || skip "built without systemtap-sdt-dev"

# table HEADER NAME: the names of its rows.
table() {
    awk -v start="define $2[(]X[)]" '$0 ~ start { on = 1 } on { print } on && !/\\$/ { exit }' \
        "$src/$1" | sed -n 's/^ *X(\([a-z_]*\),.*/\1/p'
}
{
    table stats/counters.h HAK_STAT_TABLE
    table stats/event_log.h HAK_EVENT_TABLE
} | sort >"$work/wanted"
check "there are counters and events" [ "$(wc -l <"$work/wanted")" -gt 20 ]
for file in libhakmem.so hakmem.o; do
    readelf -n "$OUT/$file" 2>/dev/null | sed -n 's/^ *Name: \([a-z_]*\)$/\1/p' | sort -u \
        >"$work/$file.found"
    equal "$file: a probe for each" "$(comm -23 "$work/wanted" "$work/$file.found")" ""
    equal "$file: their provider" "$(readelf -n "$OUT/$file" 2>/dev/null |
        sed -n 's/^ *Provider: //p' | sort -u)" hakmem
done
