# SPDX-License-Identifier: MIT
# The shared library runs where libc has no threads and no dlsym, as in programs on glibc before
# 2.34 that are not linked with libpthread and libdl. Such a libc is played by a copy of the library
# that asks for these under names that nobody has. If this fails, the one binary does not start
# there: "symbol lookup error".
. "$(dirname "$0")/lib.sh"
needs "$CC" sed

# Names of the same length, in place.
missing='pthread_key_create pthread_setspecific dlsym'
rename=
for name in $missing; do
    check "the library asks for $name, weakly" \
        sh -c "nm -D '$PRELOAD_LIB' | grep -q ' w $name@GLIBC_2'"
    absent=$(echo "$name" | sed 's/[a-z]$/0/')
    rename="$rename;s/\\<$name\\>/$absent/g"
done
LC_ALL=C sed "$rename" "$PRELOAD_LIB" >"$work/libhakmem.so"
for name in $missing; do
    check "the copy does not ask for $name" sh -c "! nm -D '$work/libhakmem.so' | grep -q ' $name@'"
done

silently "$CC" "$consumer/use.c" -o "$work/use" -pthread
# Nor has it restartable sequences, so that each thread has a cache of its own.
serves threads env HAKMEM_CACHES=thread LD_PRELOAD="$work/libhakmem.so" "$work/use"
equal "only the first thread has a heap of its own" "$(counter threads threads_started)" 1
check "the others did without" [ "$(counter threads cacheless_calls)" -gt 4 ]
for program in ls sh; do
    plainly "$program" "$program" --version
    PRELOAD_LIB=$work/libhakmem.so preloaded "$program" "$program" --version
    equal "$program runs as ever" "$(cat "$work/$program.err")" "$(cat "$work/$program.plain.err")"
done
