/* SPDX-License-Identifier: MIT */
/* bench/scale/processors.c - as many processors as there are threads, for counting on a small
 * machine.
 *
 *   LD_PRELOAD="libprocessors.so libhakmem.so" HAKMEM_CACHES=thread PROGRAM ...
 *
 * hakmem asks sched_getcpu for the processor's number where caches belong to threads. Here each
 * thread keeps the number that it had first: 0, 1, 2 and so on, again from 0 after
 * SIMULATED_PROCESSORS (64) of them. So it has a cache of its own and enters a heap of its own, as
 * on a machine of so many processors. How many threads run at once does not change.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define PROCESSORS_DEFAULT 64

static atomic_int thread_count;
static _Thread_local int number = -1;

int sched_getcpu(void)
{
    if (number < 0) {
        const char *text = getenv("SIMULATED_PROCESSORS");
        int processors = text == NULL ? 0 : atoi(text);
        if (processors <= 0)
            processors = PROCESSORS_DEFAULT;
        number = atomic_fetch_add(&thread_count, 1) % processors;
    }
    return number;
}
