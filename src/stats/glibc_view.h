/* SPDX-License-Identifier: MIT */
/* stats/glibc_view.h - a snapshot in the terms of glibc's mallinfo2(3) and malloc_info(3).
 *
 * Owns        what glibc's numbers mean here. The arena is resident memory outside large blocks;
 *             fast are cached free blocks (in bins, in quarantine and not collected yet), rest is
 *             all other free memory; mapped are large blocks.
 * Invariants  arena == in use + fast + rest; what the program has is in use + mapped.
 * Threads     pure.
 * Tests       tests/unit/stats/glibc_view_test.c
 */
#ifndef HAK_STATS_GLIBC_VIEW_H
#define HAK_STATS_GLIBC_VIEW_H

#include "stats/snapshot.h"

struct glibc_view {
    uint64_t arena_bytes;
    uint64_t arena_most_bytes; /* of address space: it never shrinks */
    uint64_t in_use_bytes;
    uint64_t fast_count;
    uint64_t fast_bytes;
    uint64_t rest_count; /* free blocks in slabs */
    uint64_t rest_bytes;
    uint64_t mapped_count;
    uint64_t mapped_bytes;
    uint64_t releasable_bytes; /* what malloc_trim would return at once */
};

struct glibc_view hak_glibc_view(const struct snapshot *snapshot);

#endif
