# SPDX-License-Identifier: MIT
# Real programs and our own with as many guarded blocks as there is room for: they say the same as
# on the system's malloc and are never reported. If this fails, the sample harms correct programs.
. "$(dirname "$0")/lib.sh"

# on COMMAND...: says the same with guarded blocks.
on() {
    alike "$1" HAKMEM_GUARD_RATE=4096 "$@"
    equal "$1: nothing is reported" "$(grep hakmem: "$work/$1.err")" ""
    check "$1: some were guarded" grep -q '^guarded_blocks: [1-9]' "$work/$1.stats"
    equal "$1: none was caught" "$(sed -n 's/^guarded_caught: //p' "$work/$1.stats" | sort -u)" 0
}

if command -v python3 >/dev/null; then
    on python3 "$tests/python_workload.py"
fi
if command -v perl >/dev/null; then
    on perl "$tests/perl_workload.pl"
fi
seq 1 200000 | sort -R --random-source=/bin/sh >"$work/numbers"
on sort -n --parallel=4 -S 20M "$work/numbers"

own_programs HAKMEM_GUARD_RATE=1 cpp early errno exec exit fork heaps hot_cold life quiet stop
