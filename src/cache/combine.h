/* SPDX-License-Identifier: MIT */
/* cache/combine.h - frees of other heaps' blocks, gathered before they are published.
 *
 * Owns        struct combine: a direct-mapped table of {slab, word of its bitmap, mask} that blocks
 *             are sorted into when they leave a bin. Neighbours allocated together come back
 *             together, so one atomic returns up to 64 blocks.
 * Invariants  what is in the table is bounded by HAK_COMBINE_BYTES of blocks; an entry is cleared
 *             before it is published, so a death between the two leaks and never doubles. Its blocks
 *             count as used. Blocks of private heaps never wait here: such a heap may be destroyed;
 *             their tags say so.
 * Threads     the owner alone, inside the gate. Strangers with a claim on the gate count what is
 *             here, as in bins.
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
    uint64_t whole; /* the mask when all blocks of the word are in it */
    uint32_t word_index;
    uint32_t held_bytes;
    uint32_t generation; /* of the slab when the first bit was set */
};

struct combine {
    uint32_t held_bytes;
    struct combine_entry entries[HAK_COMBINE_ENTRIES];
};

/* Frees one block of a slab that belongs to somebody else. */
void hak_combine_add(struct combine *combine, struct slab *slab, void *block,
                     struct stat_block *stats);

/* The same for the first of `count` blocks and those behind it that share its word of the bitmap:
 * returns how many these are. All are of the slab's class. */
uint32_t hak_combine_add_run(struct combine *combine, struct slab *slab, void *const *blocks,
                             uint32_t count, struct stat_block *stats);

/* Publishes everything it holds. */
void hak_combine_publish_all(struct combine *combine, struct stat_block *stats);

/* Frees one block at once, for callers without a table. */
void hak_combine_bypass(struct slab *slab, const void *block);

#endif
