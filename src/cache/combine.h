/* SPDX-License-Identifier: MIT */
/* cache/combine.h - frees of other heaps' blocks, gathered before they are published.
 *
 * Owns        struct combine: small blocks that wait, by their addresses, and a direct-mapped table
 *             of {slab, word of its bitmap, mask} that they are sorted into, all at once, as are
 *             blocks of common classes that leave a bin. Neighbours allocated together come back
 *             together, so one atomic returns up to 64 blocks.
 * Invariants  what waits is bounded by HAK_COMBINE_WAITING blocks of HAK_WAITING_BLOCK_BYTES_MAX,
 *             what is in the table by HAK_COMBINE_BYTES of blocks; an entry is cleared before it is
 *             published, so a death between the two leaks and never doubles. Its blocks count as
 *             used. Blocks of private heaps never wait here: such a heap may be destroyed; their
 *             tags say so. Nothing is known of a block that waits but that some other heap's slab
 *             was there: it is looked up again when it is sorted, since the slab may have moved to
 *             another heap, this one too, and since somebody may free the block a second time.
 *             The list is a bin in all but name (cache/magazine.h): pushed to without the gate,
 *             closed while it is sorted, so that a handler that frees meanwhile takes the slow way.
 * Threads     the owner alone; the gate is held for all but hak_combine_wait. Strangers with a
 *             claim on the gate count what is here, as in bins.
 * Tests       tests/unit/cache/combine_test.c, tests/race/remote_race.c
 */
#ifndef HAK_CACHE_COMBINE_H
#define HAK_CACHE_COMBINE_H

#include "base/limits.h"
#include "cache/magazine.h"
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
    struct bin waiting; /* blocks that are not in the table yet */
    struct magazine magazine;
    uint32_t held_bytes; /* in the table */
    struct combine_entry entries[HAK_COMBINE_ENTRIES];
    void *slots[HAK_COMBINE_WAITING + 1];
};

/* An empty one. */
void hak_combine_start(struct combine *combine);

/* A block of another heap's slab, which is not private and has blocks up to
 * HAK_WAITING_BLOCK_BYTES_MAX, waits; false: there is no room. */
HAK_INLINE bool hak_combine_wait(struct combine *combine, void *block)
{
    if (HAK_UNLIKELY(hak_bin_is_full(&combine->waiting)))
        return false;
    void **top = combine->waiting.top + 1;
    hak_word_publish(top, block); /* who counts may look */
    hak_compiler_fence();
    hak_word_publish(&combine->waiting.top, top);
    return true;
}

/* Moves what waits into the table; false: nothing did. */
bool hak_combine_sort(struct combine *combine, struct stat_block *stats);

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
