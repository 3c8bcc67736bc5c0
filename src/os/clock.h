/* SPDX-License-Identifier: MIT */
/* os/clock.h - the kernel's clocks, whoever else has a function of that name.
 *
 * Owns        where the kernel's clock_gettime is.
 * Invariants  malloc and free ask for the time. A library that is preloaded to change it
 *             (libfaketime) defines clock_gettime, and may allocate there, or ask the loader, which
 *             does: in the middle of what malloc and free are about. So no other library's is
 *             called: the kernel maps one into each process (vdso(7)), and where there is none, as
 *             under valgrind, the system call serves.
 * Threads     any, signal handlers too; errno is kept.
 * Tests       tests/unit/os/clock_test.c, tests/preload/own_clock.c
 */
#ifndef HAK_OS_CLOCK_H
#define HAK_OS_CLOCK_H

#include "base/compiler.h"

#include <time.h>

/* As clock_gettime(2); 0 where the kernel refuses. */
struct timespec hak_os_clock_read(clockid_t clock);

/* The same in milliseconds. */
HAK_INLINE uint64_t hak_os_clock_read_ms(clockid_t clock)
{
    struct timespec now = hak_os_clock_read(clock);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

#endif
