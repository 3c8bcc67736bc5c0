# SPDX-License-Identifier: MIT
# A program that chooses its own settings by `hakmem_conf` has them, however it got hakmem, and its
# user's environment wins over them. If this fails, programs are tuned by text that nobody reads.
. "$(dirname "$0")/lib.sh"
needs "$CC"
installed
lib=$prefix/lib
flags="-I$prefix/include $tests/aid/own_conf.c -pthread"

# says NAME EXPECTED COMMAND...: the decay that the program has, in milliseconds.
says() {
    name=$1
    expected=$2
    shift 2
    equal "$name" "$("$@" 2>&1)" "$expected"
}
silently "$CC" "$lib/hakmem.o" $flags -o "$work/object"
says "linked with hakmem.o" 4000 "$work/object"
silently "$CC" -static "$lib/hakmem.o" $flags -o "$work/static"
says "linked statically" 4000 "$work/static"
silently "$CC" $flags -L"$lib" -lhakmem -Wl,-rpath,"$lib" -o "$work/shared"
says "linked with libhakmem.so" 4000 "$work/shared"
says "the environment wins" 70 env HAKMEM_DECAY=70 "$work/shared"
says "as the mode does not" 4000 env HAKMEM_MODE=fast "$work/shared"
silently "$CC" -DHAKMEM_WEAK -Wl,--export-dynamic-symbol=hakmem_conf $flags -o "$work/alone"
says "preloaded" 4000 env LD_PRELOAD="$lib/libhakmem.so" "$work/alone"
says "without hakmem" none "$work/alone"
