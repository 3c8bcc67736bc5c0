/* SPDX-License-Identifier: MIT */
/* tests/preload/own_syscall.c - a program, or a library that is preloaded, has a syscall of its
 * own, as libuid_wrapper has, which takes a lock there that its handler of fork holds. hakmem does
 * not call it. If this fails, a program under such a library hangs in its first fork. */
#include "program.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define PATIENCE_MS 60000

static _Atomic unsigned calls;

long syscall(long number, ...)
{
    long (*next)(long, ...);
    *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    va_list arguments;
    va_start(arguments, number);
    long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long);
    long d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
    va_end(arguments);
    calls++;
    return next(number, a, b, c, d, e, f);
}

TEST(hakmem_asks_the_kernel_by_no_function_of_others)
{
    check_is_served();
    pthread_t threads[3];
    unsigned before = calls;
    start_threads(threads, 3, allocate_some);
    pid_t child = fork();
    if (child == 0) {
        allocate_some(NULL);
        _exit(calls != before);
    }
    CHECK_CHILD_ENDS_WELL(child, PATIENCE_MS);
    join_threads(threads, 3);
    for (unsigned i = 0; i < 50; i++)
        free(malloc(8u << 20));
    malloc_trim(0);
    CHECK_EQ(calls, before);
    CHECK_EQ(syscall(SYS_getpid), getpid());
    CHECK_EQ(calls, before + 1);
}
