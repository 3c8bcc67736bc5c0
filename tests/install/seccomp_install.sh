# SPDX-License-Identifier: MIT
# A program behind a strict filter of system calls runs with what docs/SYSCALLS.md lists and no
# more; and if one of these is refused, what the table says happens. If this fails, a sandboxed
# program dies of SIGSYS when it takes hakmem.
. "$(dirname "$0")/lib.sh"
needs "$CC"
installed
table=$prefix/share/doc/hakmem/SYSCALLS.md
calls=$(sed -n 's/^| `\([a-z0-9_]*\)` |.*/\1/p' "$table")
check "the table has calls" [ "$(echo "$calls" | wc -l)" -gt 10 ]
for call in $calls; do
    echo "CALL($call)"
done >"$work/calls.h"
silently "$CC" -I"$work" "$prefix/lib/hakmem.o" "$tests/aid/confined.c" -o "$work/confined" -pthread

status=0
"$work/confined" only || status=$?
[ "$status" != 77 ] || skip "this kernel has no filters"
equal "the listed calls are enough" "$status" 0
# Each option that leads to further calls.
for setting in HAKMEM_STATS=raw HAKMEM_STATS_FILE="$work/file" HAKMEM_SHOW_CONF=1 \
    HAKMEM_STATS_SHM=1 \
    HAKMEM_CRASH_REPORT=1 HAKMEM_STATS_SIGNAL=USR2 HAKMEM_BOGUS=1 HAKMEM_DECAY=0; do
    env HAKMEM_STATS=raw "$setting" "$work/confined" only 2>"$work/said" || fail "with $setting"
done
check "statistics were written" [ -s "$work/file" ]

for call in $calls; do
    case $call in
    exit) continue ;; # no thread could end
    mmap) expected=3 ;;
    *) expected=0 ;;
    esac
    status=0
    env HAKMEM_STATS=raw "$work/confined" without "$call" 2>"$work/said" || status=$?
    equal "without $call" "$status" "$expected"
done
