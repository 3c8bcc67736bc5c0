# SPDX-License-Identifier: MIT
# Another CMake project builds hakmem as a part of itself, from a folder or a tarball: its programs
# get hakmem's malloc by each target, and the project gets nothing else: no tests, no installed
# files, no flags, no names but hakmem's. With --full also by the oldest CMake that can.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/root.sh"
needs "$CMAKE" ninja make tar gzip
quietly "$root/packaging/package.sh" tarball "$work"
tarball=$(echo "$work"/hakmem-*.tar.gz)
tar -C "$work" -xzf "$tarball"
folder=${tarball%.tar.gz}

# project BUILD CMAKE HOW FROM OPTIONS...: makes the consumer's project so, and runs its programs.
project() {
    build=$work/$1
    cmake=$2
    how=$3
    from=$4
    shift 4
    quietly "$cmake" -S "$consumer" -B "$build" -DHOW="$how" -DFROM="$from" "$@" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
    check "$how: no warning of CMake's: $(grep -A5 Warning "$work/said")" \
        sh -c "! grep -q Warning '$work/said'"
    quietly "$cmake" --build "$build"
    check "$how: no warning of the compiler's: $(grep -m3 warning: "$work/said")" \
        sh -c "! grep -q warning: '$work/said'"
    for kind in object static shared; do
        large_blocks=10
        serves "c_$kind" "$build/programs/c_$kind"
        serves "cpp_$kind" "$build/programs/cpp_$kind"
    done
    large_blocks=0
    serves quiet_static "$build/programs/quiet_static"
}

project folder "$CMAKE" add_subdirectory "$folder" -G Ninja -DCMAKE_INSTALL_PREFIX="$work/prefix"
equal "all targets are hakmem's" "$(tr ';' '\n' <"$work/folder/targets" | grep -v '^hakmem_')" ""
equal "no tests, no benchmarks, no command" "$(cd "$work/folder" && "$CMAKE" -E cat \
    build.ninja | grep -o -e 'Linking [A-Z]* executable [^ ]*' -e 'tests/[a-z]*/[a-z_]*_test' \
    -e 'bench/workloads' -e 'uninstall' | head -n 3)" ""
quietly ninja -C "$work/folder" install
equal "nothing of hakmem's is installed" "$(cd "$work/prefix" && find . -type f)" ./share/use.c
equal "the cache has hakmem's names, and CMake's own" "$(sed -n 's/^\([A-Za-z_][^:]*\):.*/\1/p' \
    "$work/folder/CMakeCache.txt" | grep -v -e '^_*CMAKE_' -e '^HAKMEM_' -e '^hakmem_' \
    -e '^consumer_' -e '^HOW$' -e '^FROM$' -e '^FIND_PACKAGE_' -e '^Threads_')" ""
flags=$(grep '"command": .*c_object.dir' "$work/folder/compile_commands.json" | head -n 1)
check "the project is compiled with its own flags: $flags" \
    sh -c 'case $1 in *-fno-builtin* | *-g1* | *-fvisib* | *HAK* | "") exit 1 ;; esac' sh "$flags"

# How it is compiled was seen above.
project fetched "$CMAKE" FetchContent "$tarball" -G "Unix Makefiles" \
    -DCMAKE_BUILD_TYPE=Release -DHAKMEM_FLAGS=-O0

# CMake 3.13 is for Pythons that are no more; its wheel is unpacked, not installed.
full || exit 0
[ "$(uname -m)" = x86_64 ] || skip "there is no such CMake for this machine"
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc)
export CMAKE_BUILD_PARALLEL_LEVEL
quietly "$CMAKE" --version
pip=$root/out/venv/bin/pip
[ -x "$pip" ] || pip=pip3
"$pip" download -q --disable-pip-version-check --no-deps --only-binary :all: --python-version 37 \
    --platform manylinux1_x86_64 -d "$work/old" cmake==3.13.0 >"$work/said" 2>&1 ||
    skip "no CMake 3.13: $(tail -n 1 "$work/said")"
(cd "$work/old" && python3 -m zipfile -e cmake-*.whl .)
chmod +x "$work/old/cmake/data/bin/cmake"
old=$work/old/cmake/data/bin/cmake
check "it is 3.13" sh -c "'$old' --version | grep -q ' 3.13.0'"
project old "$old" add_subdirectory "$folder"
quietly "$old" -S "$folder" -B "$work/whole" -DCMAKE_INSTALL_PREFIX="$work/prefix"
quietly "$old" --build "$work/whole" --target all
quietly "$old" --build "$work/whole" --target install
quietly "$old" -S "$consumer" -B "$work/found" -DCMAKE_PREFIX_PATH="$work/prefix"
quietly "$old" --build "$work/found"
large_blocks=10
serves found "$work/found/cpp_object"
