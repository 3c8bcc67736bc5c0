# SPDX-License-Identifier: MIT
# Built with musl, hakmem serves programs of musl: preloaded, linked, and in a static one. If this
# fails, it is an allocator for glibc only.
. "$(dirname "$0")/lib.sh"
needs musl-gcc "$CMAKE" ninja

cat >"$work/use.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *argument)
{
    static __thread char *blocks[100];
    for (int i = 0; i < 20000; i++) {
        char **block = &blocks[i * 7 % 100];
        free(*block);
        *block = calloc(1, 1 + i % 3000);
        if (!*block || (*block)[i % 3000] != 0)
            abort();
        memset(*block, 1, 1 + i % 3000);
    }
    for (int i = 0; i < 20; i++)
        free(realloc(malloc(300000), 200000 + i * 100000));
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    int status = 1;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    if (fork() == 0)
        return work(NULL) != NULL;
    wait(&status);
    return status;
}
END
root=$(cd "$tests/../.." && pwd)
quietly "$CMAKE" -S "$root" -B "$work/musl" -G Ninja --toolchain "$root/cmake/musl.cmake" \
    -DHAKMEM_TESTS=
quietly "$CMAKE" --build "$work/musl"
quietly musl-gcc -o "$work/plain_use" "$work/use.c"
quietly musl-gcc -o "$work/linked_use" "$work/musl/hakmem.o" "$work/use.c"
quietly musl-gcc -static -o "$work/static_use" "$work/musl/hakmem.o" "$work/use.c"
# A program that confines itself, as in sandbox_install.sh.
headers="-idirafter /usr/include -idirafter /usr/include/$(uname -m)-linux-gnu"
for how in '' -static; do
    quietly musl-gcc $headers $how -o "$work/sandboxed" "$work/musl/hakmem.o" \
        "$tests/aid/sandboxed.c"
    for list in allocator openssh; do
        quietly "$work/sandboxed" prctl $list 40 0
        quietly "$work/sandboxed" seccomp $list 40 4
    done
done
serves preloaded env LD_PRELOAD="$work/musl/libhakmem.so" "$work/plain_use"
serves linked "$work/linked_use"
serves static "$work/static_use"

# Under the heap profile, which musl has no tables for: what they do not free is reported.
for how in "plain env LD_PRELOAD=$work/musl/libhakmem.so" linked static; do
    program=$work/${how%% *}_use
    wrapper=${how#"${how%% *}"}
    quietly env HAKMEM_HEAP_PROFILE=leaks \
        HAKMEM_HEAP_PROFILE_SAMPLES=0 HAKMEM_HEAP_PROFILE_RATE=1 $wrapper "$program"
    grep -q ' not freed, allocated at [1-9]' "$work/said" || fail "${how%% *}: no profile"
done
