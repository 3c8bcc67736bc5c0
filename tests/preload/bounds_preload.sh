# SPDX-License-Identifier: MIT
# libhakmem-bounds.so: each function that it checks is stopped one byte beyond a block of the heap,
# from its start and from inside, and passes up to its end; memory of others, programs without
# hakmem and real programs see no difference.
. "$(dirname "$0")/lib.sh"
bounds=$OUT/libhakmem-bounds.so
[ -e "$bounds" ] || skip "this build has no libhakmem-bounds.so"
program=$OUT/tests/preload_bounds
cases=$("$program")
check "there are cases" [ "$(echo "$cases" | wc -l)" -ge 40 ]

# runs STATUS LIBRARIES ARGUMENT...
runs() {
    wanted=$1
    libraries=$2
    shift 2
    status=0
    timeout 20 env LD_PRELOAD="$libraries" "$program" "$@" >"$work/out" 2>"$work/err" || status=$?
    equal "$* ends: $(head -c 400 "$work/err")" "$status" "$wanted"
}
both=$PRELOAD_LIB:$bounds
went_on() {
    equal "$1: goes on" "$(cat "$work/out")" "went on"
    equal "$1: says nothing" "$(cat "$work/err")" ""
}

# stopped CASE OFFSET: one line, with all that is known.
stopped() {
    what=overflow access=write function=$1
    case $1 in
    read_*) what=overread access=read function=${1#read_} ;;
    esac
    line="^hakmem: $what by $function: pointer 0x[0-9a-f]+, block of [0-9]+ bytes, $access of"
    line="$line [0-9]+ bytes at offset $2 of the block at 0x[0-9a-f]+, 1 byte beyond its end,"
    line="$line by thread [0-9]+ \(preload_bounds\) at .*preload_bounds\+0x[0-9a-f]+$"
    check "$1 at $2 is stopped: $(cat "$work/err")" grep -qE "$line" "$work/err"
    equal "$1: one line" "$(grep -c '^hakmem' "$work/err")" 1
}

for mode in balanced hardened; do
    HAKMEM_MODE=$mode
    export HAKMEM_MODE
    for case in $cases; do
        runs 0 "$both" "$case" 0 0
        went_on "$mode: $case"
        runs 0 "$both" "$case" 0 17
        went_on "$mode: $case inside"
        runs 134 "$both" "$case" 1 0
        stopped "$case" 0
        runs 134 "$both" "$case" 1 17
        stopped "$case" 17
    done
    # A slab's larger blocks, large blocks, and far inside of them.
    for asked in 1 5000 200000 900000; do
        for offset in 0 $((asked - 1)); do
            runs 0 "$both" memcpy 0 $offset $asked
            went_on "$mode: $asked bytes"
            runs 134 "$both" memcpy 1 $offset $asked
            stopped memcpy $offset
        done
    done
    # What is not hakmem's.
    runs 0 "$both" elsewhere 0
    went_on "$mode: elsewhere"
done
runs 134 "$both" memset 1
check "hardened mode knows what was asked for" grep -q 'block of 100 bytes' "$work/err"
unset HAKMEM_MODE

# misplaced WHERE WHAT CASE OFFSET REST: 8 bytes at an offset of a block that hakmem knows not to be
# there, or not to begin there yet.
misplaced() {
    function=${3#read_} access=write what=$2
    [ "$function" = "$3" ] || access=read what=$(echo "$2" | sed s/underflow/underread/)
    runs 134 "$both" "$1" "$3"
    line="^hakmem: $what by $function: pointer 0x[0-9a-f]+, block of [0-9]+ bytes, $access of"
    line="$line 8 bytes at offset $4 of the block at 0x[0-9a-f]+, $5,"
    line="$line by thread [0-9]+ \(preload_bounds\) at .*preload_bounds\+0x[0-9a-f]+$"
    check "$3 $1: $(cat "$work/err")" grep -qE "$line" "$work/err"
}
for case in memcpy memmove memset strcpy snprintf read fread fgets __memcpy_chk read_memcpy; do
    HAKMEM_MODE=hardened
    export HAKMEM_MODE
    misplaced freed "use of free memory" "$case" 0 "which is free"
    HAKMEM_MODE=fence
    misplaced before underflow "$case" -1 "1 byte before its start"
done
unset HAKMEM_MODE

# A guarded block, which knows as much in any mode.
HAKMEM_GUARD_RATE=1
export HAKMEM_GUARD_RATE
runs 134 "$both" memset 1
check "a guarded block knows it, too" grep -q 'block of 100 bytes' "$work/err"
unset HAKMEM_GUARD_RATE

# In either order; alone it says so once.
runs 134 "$bounds:$PRELOAD_LIB" memcpy 1
stopped memcpy 0
runs 0 "$bounds" memcpy 0
equal "without hakmem nothing is checked, which is said" "$(cat "$work/err")" \
    "hakmem: libhakmem-bounds.so checks nothing: libhakmem.so is not loaded"
runs 0 "$bounds" elsewhere 0

# Programs of any kind.
PRELOAD_LIB=$both
for mode in balanced hardened; do
    export HAKMEM_MODE=$mode
    for words in "python3 -c 'print(sum(len(str(i) * 9) for i in range(9999)))'" \
        "git --version" "echo 'int main(void){return 0;}' | gcc -O2 -x c -S -o - - | wc -l" \
        "perl -e 'print join(q(,), sort map { \$_ x 3 } 1..999)'" \
        "ls -lR /usr/lib/python3 | wc -l"; do
        program=${words%% *}
        command -v "$program" >/dev/null || continue
        name=$mode-$program
        plainly "$name" sh -c "$words"
        preloaded "$name" sh -c "$words"
        equal "$name: exit status, $(head -c 400 "$work/$name.err")" "$(cat "$work/$name.status")" \
            "$(cat "$work/$name.plain.status")"
        check "$name: stdout is the same" cmp "$work/$name.plain.out" "$work/$name.out"
        quiet "$name"
    done
    check "$mode: C++ strings, vectors and operators" \
        env LD_PRELOAD="$both" "$OUT/tests/cpp_preload" >"$work/said" 2>&1
done
