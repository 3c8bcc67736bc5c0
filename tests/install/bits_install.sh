# SPDX-License-Identifier: MIT
# A compiler for a 32-bit target is told why not, in words, by CMake and by the first header. If
# this fails, somebody builds for an hour and gets an allocator that cannot work.
. "$(dirname "$0")/lib.sh"
needs "$CC" "$CMAKE" ninja

root=$(cd "$tests/../.." && pwd)
said_of() {
    "$@" >"$work/said" 2>&1 && fail "$* was not refused"
    check "it says why: $(head -c 300 "$work/said")" grep -q "needs a 64-bit target" "$work/said"
}
echo '#include "base/compiler.h"' >"$work/use.c"
if ! echo 'int x;' | "$CC" -m32 -ffreestanding -xc -c -o "$work/x.o" - 2>"$work/said"; then
    skip "$CC has no 32-bit target"
fi
said_of "$CC" -m32 -ffreestanding -fsyntax-only -I"$root/src" "$work/use.c"
said_of "$CMAKE" -S "$root" -B "$work/build" -G Ninja -DCMAKE_C_FLAGS=-m32 -DCMAKE_CXX_FLAGS=-m32 \
    -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY -DHAKMEM_TESTS=
