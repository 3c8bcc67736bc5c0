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
    uint64_t whole; /* the mask when all blocks of the word are in it */
    uint32_t word_index;
    uint32_t generation; /* of the slab when the first bit was set */
};

struct combine {
    struct combine_entry entries[HAK_COMBINE_ENTRIES];
    uint32_t held_bytes;
};

HAK_INLINE struct combine_entry *hak_combine_entry_for(struct combine *combine,
                                                       const struct slab *slab, uint32_t word_index)
{
    uintptr_t line = (uintptr_t)slab / HAK_CACHE_LINE_BYTES;
    return &combine->entries[((line ^ line / 64) + word_index) % HAK_COMBINE_ENTRIES];
}

/* The common case of hak_combine_add: the block joins others of its word, and they wait for more.
 * False, and nothing has changed: it is not the common case. */
HAK_INLINE bool hak_combine_join(struct combine *combine, const struct slab *slab,
                                 const void *block, struct stat_block *stats)
{
    uint32_t index;
    if (HAK_UNLIKELY(!hak_slab_find_start(slab, block, &index)))
        return false;
    struct combine_entry *entry = hak_combine_entry_for(combine, slab, index / 64);
    uint64_t mask = entry->mask | 1ull << (index % 64);
    uint32_t held_bytes = combine->held_bytes + slab->block_bytes;
    if (entry->slab != slab || entry->word_index != index / 64 || mask == entry->mask ||
        mask >= entry->whole || held_bytes > HAK_COMBINE_BYTES)
        return false;
    entry->mask = mask;
    combine->held_bytes = held_bytes;
    hak_stat_add(stats, remote_blocks, 1);
    return true;
}

/* Frees one block of a slab that belongs to somebody else. */
void hak_combine_add(struct combine *combine, struct slab *slab, const void *block,
                     struct stat_block *stats);

/* Publishes everything it holds. */
void hak_combine_publish_all(struct combine *combine, struct stat_block *stats);

/* Frees one block at once, for callers without a table. */
void hak_combine_bypass(struct slab *slab, const void *block);

#endif
