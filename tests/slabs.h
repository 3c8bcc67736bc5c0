/* SPDX-License-Identifier: MIT */
/* tests/slabs.h - slabs and blocks past the bins, with memory brought where there is none.
 *
 * Owns        nothing.
 * Invariants  none.
 * Threads     the thread inside the heap, if others may come.
 * Tests       those that include it.
 */
#ifndef TESTS_SLABS_H
#define TESTS_SLABS_H

#include "heap/refill.h"

/* A new slab; NULL: out of memory. */
static inline struct slab *make_slab(uint32_t class_index, struct slab_owner *owner,
                                     struct stat_block *stats)
{
    struct slab *slab = hak_supply_present(class_index, owner, stats);
    if (slab != NULL)
        return slab;
    struct pool_granules brought = hak_supply_bring(class_index, owner, stats);
    return hak_supply_make(class_index, &brought, owner, stats);
}

/* A block of the heap; is_zero as for hak_heap_take_one. NULL: out of memory. */
static inline void *take_block_zero(struct heap *heap, uint32_t class_index, bool *is_zero)
{
    struct pool_granules brought = HAK_NO_GRANULES;
    void *block = hak_heap_take_one(heap, class_index, is_zero, &brought);
    if (block != NULL)
        return block;
    brought = hak_supply_bring(class_index, &heap->owner, &heap->stats);
    block = hak_heap_take_one(heap, class_index, is_zero, &brought);
    hak_supply_give_up(&brought);
    return block;
}

static inline void *take_block(struct heap *heap, uint32_t class_index)
{
    return take_block_zero(heap, class_index, NULL);
}

#endif
