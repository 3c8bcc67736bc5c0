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

/* A block came or left: of a slot's bin, by its thread. */
#define HAK_BIN_PUSHED (-1)
#define HAK_BIN_POPPED (-0xffff)
HAK_INLINE void hak_bin_commit(struct bin *bin, int32_t change)
{
    uint32_t *word = (uint32_t *)(void *)bin;
    hak_word_publish(word, *word + (uint32_t)change);
}

/* A block; NULL: the bin is empty. */
HAK_INLINE struct popped hak_slot_pop_noted(struct bins *bins, struct bin *bin)
{
    void *block = hak_word_peek((void **)(void *)bins + hak_word_peek(&bin->top));
    if (HAK_UNLIKELY(block == NULL))
        return (struct popped){NULL, NULL};
    bool is_due = bin->countdown == 0;
    hak_bin_commit(bin, HAK_BIN_POPPED);
    return (struct popped){block, is_due ? bins : NULL};
}

HAK_INLINE void *hak_slot_pop(struct bins *bins, uint32_t class_index)
{
    struct popped popped = hak_slot_pop_noted(bins, hak_bin_of(bins, class_index));
    if (HAK_UNLIKELY(popped.noted != NULL))
        hak_bin_note(popped.noted, HAK_BIN_OF_CLASS(class_index));
    return popped.block;
}

/* False: the bin is full, or the block is on top of it. */
HAK_INLINE bool hak_slot_push(struct bins *bins, struct bin *bin, void *block)
{
    uint32_t top = hak_word_peek(&bin->top);
    void **slot = (void **)(void *)bins + top;
    if (HAK_UNLIKELY(top <= hak_word_peek(&bin->limit) || hak_word_peek(slot) == block))
        return false;
    hak_word_publish(slot - 1, block);
    hak_compiler_fence();
    hak_bin_commit(bin, HAK_BIN_PUSHED);
    return true;
}

/* What will be popped after `count` others; or anything. A hint. */
HAK_INLINE void *hak_slot_ahead(struct bins *bins, uint32_t class_index, uint32_t count)
{
    const struct bin *bin = hak_bin_of(bins, class_index);
    uint32_t at = hak_word_peek(&bin->top) + count;
    return ((void **)(void *)bins)[hak_least(at, hak_word_peek(&bin->bottom))];
}

/* The newest blocks, up to `most`, newest first; or as many pushed as there is room for, from the
 * last on. Returns how many. */
uint32_t hak_slot_pop_some(struct bins *bins, uint32_t class_index, void **blocks, uint32_t most);
uint32_t hak_slot_push_some(struct bins *bins, uint32_t class_index, void *const *blocks,
                            uint32_t count);

#endif
