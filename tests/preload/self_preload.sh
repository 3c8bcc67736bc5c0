# SPDX-License-Identifier: MIT
# hakmem's own build, tests and tools on hakmem: what is built and said is what is without it. If
# this fails, hakmem's contributors would be the first to suffer from it.
. "$(dirname "$0")/lib.sh"
limit_s=1500
needs cmake ninja gcc python3
root=$(cd "$tests/../.." && pwd)
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER

# end_well NAME HOW...: without hakmem (.plain) and with it (''), which served.
end_well() {
    name=$1
    shift
    for how; do
        equal "$name$how ends well" "$(cat "$work/$name$how.status")" 0
    done
    served "$name"
}

for how in plainly preloaded; do
    $how configure cmake -S "$root" -B build -G Ninja -DCMAKE_BUILD_TYPE=None \
        -DHAKMEM_PRESET=self -DHAKMEM_TESTS=unit \
        "-DHAKMEM_FLAGS=-O0;-ffile-prefix-map=$work/plain=.;-ffile-prefix-map=$work/preloaded=."
done
end_well configure .plain ''
# Without hakmem only what is compared: the library.
plainly build cmake --build build --target hakmem_shared
preloaded build cmake --build build --target hakmem_shared unit_slab_slab_test unit_base_bits_test
end_well build .plain ''
check "compilers and linkers came to hakmem" [ "$(reports build)" -ge 100 ]
check "the library is the same" \
    cmp "$work/plain/build/libhakmem.so" "$work/preloaded/build/libhakmem.so"

preloaded tests ctest --test-dir build -R '^self[.]unit[.](slab[.]slab|base[.]bits)_test'
end_well tests ''
check "its tests pass: $(tail -n 4 "$work/tests.out")" \
    grep -q '^100% tests passed, 0 tests failed out of [1-9][0-9]' "$work/tests.out"

for tool in sizes words layers; do
    same "$tool" python3 "$root/tools/check_$tool.py"
done

# The plots and their libraries, as ./hak installs them.
python=$root/out/venv/bin/python
[ -x "$python" ] || exit 0
PYTHONPATH=$root/tools
export PYTHONPATH
set -- "$python" -m hakbench report "$root/docs/benchmarks/core.jsonl" --into "$work/report"
plainly report "$@"
mv "$work/report" "$work/report.plain"
preloaded report "$@"
served report
for file in html md svg; do
    check "report.$file is the same" cmp "$work/report.plain/report.$file" \
        "$work/report/report.$file"
done
