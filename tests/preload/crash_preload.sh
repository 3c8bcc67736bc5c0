# SPDX-License-Identifier: MIT
# HAKMEM_CRASH_REPORT=1: a program that crashes says first what the address is, and then ends as it
# would have, by the signal or in its own handler. If this fails, the report hides the crash.
. "$(dirname "$0")/lib.sh"

# crashes WAY STATUS: what it said is in $work/said.
crashes() {
    way=$1
    status=0
    env HAKMEM_CRASH_REPORT=1 LD_PRELOAD="$PRELOAD_LIB" "$OUT/tests/preload_crash" "$way" \
        2>"$work/said" || status=$?
    equal "$way: the exit status, $(head -n 3 "$work/said")" "$status" "$2"
}
says() { check "$way: $1, $(head -n 2 "$work/said")" grep -qE "^hakmem: crash: $1" "$work/said"; }
segv=139
abrt=134

crashes well 0
equal "a program that ends well says nothing" "$(cat "$work/said")" ""
crashes null $segv
says "SIGSEGV at address 0x8, near NULL\$"
says "refills: [1-9]"
says "window_committed_bytes: [1-9]"
says "[0-9]+ ms before: make_heap, 1 heap"
crashes empty $segv
says "SIGSEGV at address 0x[0-9a-f]+, in a block of 0 bytes, as of malloc\(0\).*zero_size=ordinary"
crashes live $segv
at="SIGSEGV at address 0x[0-9a-f]+,"
says "$at in a live block of 43[0-9]* bytes, 20000 from its start; the page"
crashes freed $segv
says "$at in a freed block.* of 43[0-9]* bytes, 20000 from its start; the page"
crashes large $segv
says "$at in a live large block of [0-9]+ bytes, 700000 from its start"
crashes foreign $segv
says "$at not hakmem's; the page is guarded"
crashes beyond $segv
says "$at (in the heap's addresses that are not in use|not hakmem)"
crashes stack $segv
says "$at not hakmem's"
for way in thread own; do
    crashes "$way" $segv
    says "$at not hakmem's"
done
for round in $(seq 20); do
    crashes twice $segv
    says "SIGSEGV at address 0x8, near NULL\$"
    says "[0-9]+ ms before: make_heap, 1 heap" # its last line
done
crashes many 0
equal "threads that end well say nothing" "$(cat "$work/said")" ""
crashes abort $abrt
says "SIGABRT, sent"
crashes sent $segv
says "SIGSEGV, sent"
crashes misuse $abrt
says "SIGABRT, sent"
check "the misuse comes first" [ "$(grep -n 'invalid free' "$work/said" | cut -d: -f1)" = 1 ]
# The program's own handlers.
crashes early 40
says "SIGSEGV at address 0x8, near NULL"
check "its handler ran after the report" [ "$(tail -n 1 "$work/said")" = handled ]
crashes late 40
equal "a later handler has the signal to itself" "$(cat "$work/said")" handled
