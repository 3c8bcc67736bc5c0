# SPDX-License-Identifier: MIT
# HAKMEM_LIMIT refuses, and the program dies of it: one line says why. If this fails, users
# look for a leak, or for a bug in hakmem, where it is a limit of their own.
. "$(dirname "$0")/lib.sh"
needs python3

# limited NAME SETTING...: a program that asks for 100 MiB five times, then for a little.
limited() {
    name=$1
    shift
    status=0
    env LD_PRELOAD="$PRELOAD_LIB" "$@" python3 -S -c '
refused = 0
for i in range(5):
    try:
        bytearray(100 << 20)
    except MemoryError:
        refused += 1
kept = [bytearray(1000 * i) for i in range(100)]
print(refused)' >"$work/$name.out" 2>"$work/$name.err" </dev/null || status=$?
    equal "$name ends well" "$status" 0
}
limited five HAKMEM_LIMIT=80M
equal "all of them are refused" "$(cat "$work/five.out")" 5
equal "one line: $(cat "$work/five.err")" "$(wc -l <"$work/five.err")" 1
says='^hakmem: the limit of 80M \(option limit\) is reached: a request of 1048576.. bytes gets NULL'
check "it names limit and request: $(cat "$work/five.err")" grep -qE "$says" "$work/five.err"
limited hardened HAKMEM_LIMIT=80M HAKMEM_MODE=hardened
equal "hardened: all of them are refused" "$(cat "$work/hardened.out")" 5
equal "hardened: one line: $(cat "$work/hardened.err")" "$(wc -l <"$work/hardened.err")" 1
limited enough HAKMEM_LIMIT=900M
equal "below the limit none is refused" "$(cat "$work/enough.out")" 0
check "and nothing is said" [ ! -s "$work/enough.err" ]

# What the kernel refuses is no limit of hakmem's.
(ulimit -v 100000 && limited kernel PATH="$PATH") || fail "under ulimit"
equal "the kernel refuses" "$(cat "$work/kernel.out")" 5
check "and nothing is said: $(cat "$work/kernel.err")" [ ! -s "$work/kernel.err" ]
(ulimit -v 200000 && limited both HAKMEM_LIMIT=2G) || fail "under ulimit, with a limit far away"
check "nothing is said of a limit far away: $(cat "$work/both.err")" [ ! -s "$work/both.err" ]
