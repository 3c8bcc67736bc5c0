# SPDX-License-Identifier: MIT
# Where the libraries for names and for pprof are absent the command is built all the same; CMake
# and the command say what is missing, and the rest works.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/root.sh"
needs "$CMAKE" ninja
quietly "$CMAKE" -S "$root" -B "$work/lean" -G Ninja -DHAKMEM_HAS_SYMBOLS=0 -DHAKMEM_HAS_PPROF=0 \
    -DHAKMEM_INSTALL=OFF -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX"
check "CMake says what names need" grep -q 'hakmem: .*libdw-dev' "$work/said"
check "CMake says what pprof needs" grep -q 'hakmem: .*protobuf-c' "$work/said"
quietly "$CMAKE" --build "$work/lean" --target hakmem_cli
"$OUT/tests/cli_profiled" >"$work/heap"
"$work/lean/hakmem" profile "$work/heap" >"$work/table"
check "there are addresses: $(cat "$work/table")" \
    grep -q '^  50\.0 MiB   90\.9%    52479 .* cli_profiled+0x' "$work/table"
check "and the reason" grep -q "without function names: .*libdw" "$work/table"
status=0
"$work/lean/hakmem" profile "$work/heap" --pprof "$work/pprof" 2>"$work/refused" || status=$?
equal "no pprof: $(cat "$work/refused")" "$status" 1
check "and why" grep -q 'protobuf-c' "$work/refused"
check "no file is left" [ ! -e "$work/pprof" ]
