/* SPDX-License-Identifier: MIT */
/* os/os_memory.h - the resident memory of this process, as the kernel counts it.
 *
 * Owns        nothing.
 * Invariants  as in os/os.h: errno stays, nothing is allocated. What the kernel does not show is 0.
 *             Calls: openat read close, on /proc/self/smaps and /proc/self/status.
 * Threads     any.
 * Tests       tests/unit/os/os_memory_test.c
 */
#ifndef HAK_OS_OS_MEMORY_H
#define HAK_OS_OS_MEMORY_H

#include "base/compiler.h"

struct os_range {
    uintptr_t start;
    uintptr_t end;
};

struct os_memory {
    uint64_t resident_bytes; /* of the process */
    uint64_t peak_bytes;     /* the most that it ever was */
    uint64_t own_bytes;      /* resident in the mappings that begin within the ranges */
    uint64_t huge_bytes;     /* huge pages in these mappings */
};

/* The kernel walks all of the process's memory for that. */
struct os_memory hak_os_memory_read(const struct os_range *own, uint32_t own_count);

/* Of the process only, which the kernel counts all the time. */
struct os_memory hak_os_memory_read_total(void);

#endif
