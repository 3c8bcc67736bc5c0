/* SPDX-License-Identifier: MIT */
/* heap/slot.h - pops and pushes on the bins of a slot, whichever bins its thread finds.
 *
 * Owns        nothing.
 * Invariants  as heap/bins.h says.
 * Threads     the thread that has the slot, or that has the bins to itself.
 * Tests       tests/unit/heap/bins_test.c, tests/unit/hardened/hardened_test.c
 */
#ifndef HAK_HEAP_SLOT_H
#define HAK_HEAP_SLOT_H

#include "heap/bins.h"

/* A block; NULL: the bin is empty. */
HAK_INLINE struct popped hak_slot_pop_noted(struct bins *bins, uint32_t class_index)
{
    struct bin *bin = hak_bin_of(bins, class_index);
    void *block = ((void **)(void *)bins)[hak_word_peek(&bin->top)];
    if (block == NULL)
        return (struct popped){NULL, NULL};
    bool is_due = bin->countdown == 0;
    hak_bin_commit(bin, -0x10001);
    return (struct popped){block, is_due ? bins : NULL};
}

HAK_INLINE void *hak_slot_pop(struct bins *bins, uint32_t class_index)
{
    struct popped popped = hak_slot_pop_noted(bins, class_index);
    if (HAK_UNLIKELY(popped.noted != NULL))
        hak_bin_note(popped.noted, HAK_BIN_OF_CLASS(class_index));
    return popped.block;
}

/* What will be popped after `count` others, no more than there are headers; or anything. A hint. */
HAK_INLINE void *hak_slot_ahead(struct bins *bins, uint32_t class_index, uint32_t count)
{
    uint32_t top = hak_word_peek(&hak_bin_of(bins, class_index)->top);
    return ((void **)(void *)bins)[hak_most(top, count) - count];
}

/* The newest blocks, up to `most`, newest first; or as many pushed as there is room for, from the
 * last on. Returns how many. */
uint32_t hak_slot_pop_some(struct bins *bins, uint32_t class_index, void **blocks, uint32_t most);
uint32_t hak_slot_push_some(struct bins *bins, uint32_t class_index, void *const *blocks,
                            uint32_t count);

#endif
