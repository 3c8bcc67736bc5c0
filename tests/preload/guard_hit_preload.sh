# SPDX-License-Identifier: MIT
# A fault at the guard of a sampled block is told: what it was, by which thread, where, and which
# threads allocated and freed the block. Then the program goes on or dies as without hakmem, and
# does not find a handler of hakmem's anywhere. If this fails, a found mistake is told by SIGSEGV
# alone, or a correct program feels the handler.
. "$(dirname "$0")/lib.sh"
hit=$OUT/tests/preload_guard_hit

# hits WAY STATUS: what it said is in $work/said.
hits() {
    way="$caches, $1"
    told "$2" env HAKMEM_GUARD_RATE=${rate:-1} LD_PRELOAD="$PRELOAD_LIB" "$hit" "$1"
}
segv=139
file='/[^ ]*preload_guard_hit\+0x[0-9a-f]+'
thread='by thread [0-9]+ \(preload_guard_h\)'
at="at $file( < [^ ]*0x[0-9a-f]+)*"
pointer='pointer 0x[0-9a-f]+, block of 64 bytes'

for caches in processor thread; do
    caches_belong_to $caches || continue
    hits write-over $segv
    says "overflow: $pointer, written 5 bytes behind its end $thread"
    says "$at"
    says "allocated $thread $at"
    no_more
    resolves put 2
    resolves find_guarded 3
    hits read-over $segv
    says "overflow: $pointer, read 0 bytes behind its end $thread"
    says "$at"
    says "allocated $thread $at"
    no_more
    hits under $segv
    says "(under|over)flow: $pointer, written [0-9]+ bytes (before|behind) its [a-z]* $thread"
    hits write-freed $segv
    says "use after free: $pointer, written 3 bytes from its start $thread"
    says "$at"
    says "allocated $thread $at"
    says "freed $thread $at"
    no_more
    resolves take_freed 4
    hits read-freed $segv
    says "use after free: $pointer, read 0 bytes from its start $thread"
    hits thread $segv
    says "use after free: $pointer, written 3 bytes from its start by thread [0-9]+ \(worker\)"
    says "$at"
    says "allocated by thread [0-9]+ \(worker\) $at"
    says "freed by thread [0-9]+ \(worker\) $at"
    no_more
    hits twice 134
    free='a guarded block, already free'
    says "double free: $pointer, $free, allocated $thread $at, freed $thread $at"
    no_more

    # The program's own handlers: as they were, told before.
    for way in before after; do
        hits $way 40
        says "overflow: $pointer, written 0 bytes behind its end $thread"
        says "$at"
        says "allocated $thread $at"
        no_more handled
    done
    hits recover 0
    equal "$caches: hits that the program survives are told, at first" \
        "$(grep -c 'overflow: ' "$work/said")" 8
    equal "$caches: and it goes on" "$(tail -n 1 "$work/said")" "went on"
    hits child 0
    says "overflow: $pointer, written 0 bytes behind its end $thread"

    # Nothing is said of other faults, and nobody finds a handler.
    for way in null sent stack; do
        hits $way $segv
        no_more
    done
    for way in ask load traced-sent; do
        hits $way 0
        no_more
    done
    hits traced 0
    hits raw 40
    no_more handled
    rate=0
    hits none 0
    no_more
    rate=1T
    hits none 0
    no_more
    rate=1
done
