# SPDX-License-Identifier: MIT
# A CMake project finds hakmem by find_package and takes it in by each of its targets, also after
# the installed folder was moved, and by the others where the archive is not installed.
. "$(dirname "$0")/lib.sh"
needs "$CMAKE" ninja
installed
mv "$prefix" "$work/moved"
quietly "$CMAKE" -S "$consumer" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/moved" \
    -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_BUILD_TYPE=Release
quietly "$CMAKE" --build "$work/build"
for kind in object static shared; do
    for language in c cpp; do
        serves "${language}_$kind" "$work/build/${language}_$kind"
    done
done
check "a shared one needs the library" sh -c "readelf -d '$work/build/c_shared' | grep -q libhakmem"
check "a static one does not" sh -c "! readelf -d '$work/build/c_static' | grep -q libhakmem"
silently "$CC" "$consumer/use.c" -o "$work/use" -pthread
serves run "$work/moved/bin/hakmem" run "$work/use"
check "the command is a target, too" grep -q 'add_executable(hakmem::program IMPORTED)' \
    "$work/moved"/lib*/cmake/hakmem/hakmem-config.cmake

rm "$work/moved"/lib*/libhakmem.a
rm -f "$work/moved"/lib*/cmake/hakmem/hakmem-static-targets*.cmake
quietly "$CMAKE" -S "$consumer" -B "$work/divided" -G Ninja -DCMAKE_PREFIX_PATH="$work/moved" \
    -DKINDS="object;shared" -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX"
quietly "$CMAKE" --build "$work/divided"
serves divided_shared "$work/divided/c_shared"
serves divided_object "$work/divided/c_object"
