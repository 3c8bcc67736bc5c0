/* SPDX-License-Identifier: MIT */
/* tests/unit/resident.h - how much of the window is in memory, as the kernel says.
 *
 * Owns        window_resident_bytes.
 * Invariants  exact to the page; nothing is allocated or touched.
 * Threads     one.
 * Tests       tests/unit/api/aligned_test.c, tests/unit/api/zero_test.c
 */
#ifndef TESTS_UNIT_RESIDENT_H
#define TESTS_UNIT_RESIDENT_H

#include "base/bits.h"
#include "base/limits.h"
#include "check.h"
#include "policy/policy_table.h"
#include "region/region.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#define RESIDENT_STEP_BYTES (64 * HAK_MIB)

/* A huge page would bring neighbours in that nobody touched; and where they are asked for, some are
 * touched to see how soon they come. */
static inline void refuse_huge_pages(void)
{
    hak_store_relaxed(&hak_policy.huge_heap_superslabs, HAK_MIB);
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
        SKIP("this kernel, or emulator, does not let a process refuse huge pages");
}

static inline size_t window_resident_bytes(void)
{
    static unsigned char is_resident[RESIDENT_STEP_BYTES / 4096];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    for (size_t at = 0; at < committed; at += RESIDENT_STEP_BYTES) {
        size_t bytes = hak_least(RESIDENT_STEP_BYTES, committed - at);
        CHECK_EQ(mincore((void *)(hak_region.base + at), bytes, is_resident), 0);
        for (size_t i = 0; i < bytes / page; i++)
            count += is_resident[i] & 1;
    }
    return count * page;
}

#endif
