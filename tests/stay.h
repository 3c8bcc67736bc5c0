/* SPDX-License-Identifier: MIT */
/* tests/stay.h - keeps a thread on one processor, for tests of the cache that it has there.
 *
 * Owns        nothing.
 * Invariants  needs _GNU_SOURCE.
 * Threads     any, each for itself.
 * Tests       tests/unit/heap/heaps_test.c
 */
#ifndef TESTS_STAY_H
#define TESTS_STAY_H

#include "check.h"

#include <sched.h>

/* False: the process may not use that one. */
static inline bool stay_on(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

/* On the one that the thread runs on, or ran on a moment ago. */
static inline void stay_here(void)
{
    CHECK(stay_on(sched_getcpu()));
}

#endif
