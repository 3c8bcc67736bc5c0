/* SPDX-License-Identifier: MIT */
/* tests/preload/own_clock.c - a program, or a library that is preloaded, has a clock_gettime of its
 * own, as libfaketime has. hakmem does not call it: it may allocate, or ask the loader, which
 * frees. If this fails, a program under such a library is ended by a "double free" that is none. */
#include "program.h"

#include <malloc.h>
#include <sys/syscall.h>
#include <time.h>

static _Atomic unsigned calls;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    calls++;
    free(malloc(100));
    return (int)syscall(SYS_clock_gettime, clock, now);
}

TEST(malloc_and_free_never_ask_a_clock_that_is_not_the_kernels)
{
    check_is_served();
    pthread_t threads[3];
    unsigned before = calls;
    start_threads(threads, 3, allocate_some);
    allocate_some(NULL);
    join_threads(threads, 3);
    for (unsigned i = 0; i < 50; i++)
        free(malloc(8u << 20));
    malloc_trim(0);
    CHECK_EQ(calls, before);
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    CHECK_EQ(calls, before + 1);
}
