/* SPDX-License-Identifier: MIT */
/* cache/combine.h - frees of other heaps' blocks, gathered before they are published.
 *
 * Owns        struct combine: a direct-mapped table of {slab, word of its bitmap, mask}. Neighbours
 *             allocated together come back together, so one atomic returns up to 64 blocks.
 * Invariants  what it holds is bounded by HAK_COMBINE_BYTES of blocks; an entry is cleared before
 *             it is published, so a death between the two leaks and never doubles. Its blocks count
 *             as used. Blocks of private heaps never wait here: such a heap may be destroyed.
 * Threads     the owner alone; never touched by strangers.
 * Tests       tests/unit/cache/combine_test.c, tests/race/remote_race.c
 */
#ifndef HAK_CACHE_COMBINE_H
#define HAK_CACHE_COMBINE_H

#include "base/limits.h"
#include "observe/stat.h"
#include "slab/slab.h"

struct combine_entry {
    struct slab *slab; /* NULL: empty */
    uint64_t mask;
    uint32_t word_index;
    uint32_t generation; /* of the slab when the first bit was set */
};

struct combine {
    struct combine_entry entries[HAK_COMBINE_ENTRIES];
    uint32_t held_bytes;
};

/* Frees one block of a slab that belongs to somebody else. */
void hak_combine_add(struct combine *combine, struct slab *slab, const void *block,
                     struct stat_block *stats);

/* Publishes everything it holds. */
void hak_combine_publish_all(struct combine *combine, struct stat_block *stats);

/* Frees one block at once, for callers without a table. */
void hak_combine_bypass(struct slab *slab, const void *block);

#endif
