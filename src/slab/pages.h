/* SPDX-License-Identifier: MIT */
/* slab/pages.h - purges the pages of a slab on which no block is in use.
 *
 * Owns        the `purged` mask of a slab: one bit for each run of pages (a leaf: one page, or more
 *             where 64 bits must cover a long slab, counted from the first block) that was purged
 *             and from which no block was taken since.
 * Invariants  a leaf is purged only while every block that overlaps it is free. Blocks in a cache
 *             or in transit count as used, so their bytes stay. hak_slab_take and
 *             hak_slab_take_zero clear the bits of the blocks that they take.
 * Threads     the one inside the heap: only there does a free block become used.
 *             Remote frees may arrive meanwhile; they only add free blocks.
 * Tests       tests/unit/slab/pages_test.c, tests/model/
 */
#ifndef HAK_SLAB_PAGES_H
#define HAK_SLAB_PAGES_H

#include "slab/slab.h"

/* The leaves that the block at `start_bytes` into the slab overlaps. */
HAK_INLINE uint64_t hak_slab_leaves_of(const struct slab *slab, size_t start_bytes)
{
    uint32_t first = (uint32_t)(start_bytes >> slab->leaf_shift);
    uint32_t last = (uint32_t)((start_bytes + slab->block_bytes - 1) >> slab->leaf_shift);
    return hak_bit_low_mask(last - first + 1) << first;
}

/* Leaves on which no block is in use and that may be resident, one bit each. */
uint64_t hak_slab_dead_leaves(const struct slab *slab);

/* Gives those leaves back to the kernel; returns the bytes. Leaves that the kernel refuses stay as
 * they are. */
size_t hak_slab_purge_dead(struct slab *slab);

#endif
