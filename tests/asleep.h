/* SPDX-License-Identifier: MIT */
/* tests/asleep.h - waits until other threads wait.
 *
 * Owns        nothing.
 * Invariants  what the kernel says of a thread counts, not how long it takes.
 * Threads     any.
 * Tests       tests/unit/heap/heaps_test.c, tests/unit/heap/supply_test.c
 */
#ifndef TESTS_ASLEEP_H
#define TESTS_ASLEEP_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* For await_sleep. */
static inline int thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

static inline bool is_asleep(int id)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    FILE *file = fopen(path, "r");
    bool is_read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL)
        fclose(file);
    const char *name_end = is_read ? strrchr(line, ')') : NULL;
    return name_end != NULL && name_end[2] == 'S';
}

/* Until the thread that writes its id there is asleep in a system call. */
static inline void await_sleep(atomic_int *id)
{
    while (atomic_load(id) == 0 || !is_asleep(atomic_load(id)))
        sched_yield();
}

#endif
