/* SPDX-License-Identifier: MIT */
/* slab/class_use.h - a heap's slabs and blocks of each class, for the statistics.
 *
 * Owns        struct class_use: slabs, used blocks as slab.used counts them, and how many blocks
 *             ever left slabs, for bins or for the program.
 * Invariants  changed where the slabs change, so that a census walks heaps and not slabs.
 * Threads     the thread inside the heap writes; any thread reads, a little late.
 * Tests       tests/unit/heap/census_test.c
 */
#ifndef HAK_SLAB_CLASS_USE_H
#define HAK_SLAB_CLASS_USE_H

#include "base/atomic.h"
#include "base/compiler.h"

struct class_use {
    _Atomic uint64_t used_blocks;
    _Atomic uint64_t slabs;
    _Atomic uint64_t taken_blocks;
};

/* So many more blocks of the class are used; a negative number: fewer. */
HAK_INLINE void hak_use_note(struct class_use *use, uint32_t class_index, int64_t blocks)
{
    hak_counter_add(&use[class_index].used_blocks, (uint64_t)blocks);
}

/* So many blocks of the class were taken out of their slabs. */
HAK_INLINE void hak_use_take(struct class_use *use, uint32_t class_index, uint32_t blocks)
{
    hak_use_note(use, class_index, blocks);
    hak_counter_add(&use[class_index].taken_blocks, blocks);
}

/* The heap has one slab more, or one less (-1), of which `used` blocks are used. */
HAK_INLINE void hak_use_note_slab(struct class_use *use, uint32_t class_index, int64_t slabs,
                                  uint32_t used)
{
    hak_counter_add(&use[class_index].slabs, (uint64_t)slabs);
    hak_use_note(use, class_index, slabs * (int64_t)used);
}

#endif
