/* SPDX-License-Identifier: MIT */
/* os/os_resident.h - which pages of ours are in memory, as /proc/self/pagemap has it.
 *
 * Owns        nothing; the descriptor is the caller's.
 * Invariants  as the Rss of /proc/self/smaps counts, the kernel's shared zero page, mapped on
 *             reads, does not count. Before Linux 6.7 it cannot be distinguished from pages shared
 *             since a fork: neither counts there. Nothing is allocated, errno stays. Calls: openat
 *             ioctl pread64 close.
 * Threads     any.
 * Tests       tests/unit/os/os_resident_test.c, tests/unit/stats/residency_test.c
 */
#ifndef HAK_OS_OS_RESIDENT_H
#define HAK_OS_OS_RESIDENT_H

#include "base/compiler.h"

struct os_resident {
    int fd;
    size_t page_bytes; /* the kernel's own, at least 4 KiB */
    bool can_scan;     /* since Linux 6.7 */
};

/* False: the kernel does not tell. */
bool hak_os_resident_open(struct os_resident *resident);
void hak_os_resident_close(const struct os_resident *resident);

/* Sets pages[i] to 1 for each page of [start, start + bytes) that is in memory, else to 0. */
void hak_os_resident_read(const struct os_resident *resident, uintptr_t start, size_t bytes,
                          unsigned char *pages);

#endif
