# SPDX-License-Identifier: MIT
# tests/install/lib.sh - sourced by the scripts here: install into $prefix, build somebody else's
# program there, and see that hakmem serves it.
. "$(dirname "$0")/../preload/lib.sh"
: "${CMAKE:=cmake}" "${CC:=cc}" "${CXX:=c++}"

consumer=$tests/consumer
prefix=$work/prefix
large_blocks=10 # that the consumers ask for, one by one

# Nothing of the caller's reaches the compilers.
unset CFLAGS CXXFLAGS LDFLAGS LIBRARY_PATH LD_LIBRARY_PATH CPATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH

# quietly COMMAND...: what it says is shown only if it fails; $work/said has it.
quietly() {
    "$@" >"$work/said" 2>&1 || fail "$* said: $(tail -c 3000 "$work/said")"
}

# silently COMMAND...: it ends well and says nothing: no warning of the compiler or the linker.
silently() {
    quietly "$@"
    equal "nothing is said by $*" "$(head -c 500 "$work/said")" ""
}

installed() {
    quietly "$CMAKE" --install "$OUT" --prefix "$prefix"
}

# serves NAME COMMAND...: the program ends well, says nothing, and hakmem alone served it.
serves() {
    name=$1
    shift
    status=0
    (cd "$work/plain" && exec timeout "$limit_s" env HAKMEM_STATS=raw \
        HAKMEM_STATS_FILE="$work/$name.stats" "$@") </dev/null >"$work/$name.out" 2>&1 || status=$?
    equal "$name: ends well, $(head -c 300 "$work/$name.out")" "$status" 0
    equal "$name: says nothing" "$(head -c 300 "$work/$name.out")" ""
    served "$name"
    check "$name: the large blocks were hakmem's" \
        [ "$(counter "$name" spans_taken)" -ge "$large_blocks" ]
}
