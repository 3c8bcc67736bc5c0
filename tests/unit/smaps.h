/* SPDX-License-Identifier: MIT */
/* tests/unit/smaps.h - the Rss of a range of addresses, as /proc/self/smaps has it.
 *
 * Owns        smaps_resident_bytes and check_residency_adds_up.
 * Invariants  nothing is allocated.
 * Threads     one.
 * Tests       tests/unit/stats/residency_test.c, tests/model/random_ops_test.c
 */
#ifndef TESTS_UNIT_SMAPS_H
#define TESTS_UNIT_SMAPS_H

#include "check.h"
#include "hakmem/hakmem.h"

#include <fcntl.h>

/* The bytes of `line` that say "Rss:", or those of a mapping's addresses, decide. */
static inline size_t smaps_resident_bytes(uint64_t start, uint64_t end)
{
    static char text[1 << 16];
    size_t used = 0, total_kib = 0;
    int is_within = 0;
    int fd = open("/proc/self/smaps", O_RDONLY);
    CHECK(fd >= 0);
    for (;;) {
        ssize_t got = read(fd, text + used, sizeof text - 1 - used);
        CHECK(got >= 0);
        used += (size_t)got;
        text[used] = '\0';
        char *line = text;
        for (char *next; (next = strchr(line, '\n')) != NULL; line = next + 1) {
            unsigned long long from, to;
            size_t kib;
            if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
                is_within = from >= start && from < end;
            else if (is_within && sscanf(line, "Rss: %zu", &kib) == 1)
                total_kib += kib;
        }
        if (got == 0)
            break;
        used -= (size_t)(line - text);
        memmove(text, line, used);
    }
    close(fd);
    return total_kib * 1024;
}

static inline int is_close(uint64_t told, uint64_t found)
{
    uint64_t difference = told > found ? told - found : found - told;
    return difference <= told / 50 || difference <= 256 * 1024;
}

/* The parts are all of it, and all of it is what the kernel says: within 2 % or 256 KiB. Memory may
 * go back between the two looks, by hakmem's own thread. */
static inline struct hakmem_residency check_residency_adds_up(void)
{
    struct hakmem_residency at;
    uint64_t told = 0;
    for (int tries = 0; tries < 500; tries++) {
        CHECK_EQ(hakmem_residency_get(&at, sizeof at), 0);
        CHECK_EQ(at.resident_bytes, at.live_bytes + at.cached_bytes + at.withheld_bytes +
                                        at.slab_free_bytes + at.pinned_bytes + at.retained_bytes +
                                        at.huge_excess_bytes + at.metadata_bytes);
        told = smaps_resident_bytes(at.mapping_start, at.mapping_end) +
               smaps_resident_bytes(at.record_start, at.record_end) +
               smaps_resident_bytes(at.mark_start, at.mark_end);
        if (is_close(told, at.resident_bytes))
            return at;
    }
    CHECK_FAILED("parts: %llu bytes, smaps: %llu", (unsigned long long)at.resident_bytes,
                 (unsigned long long)told);
}

#endif
