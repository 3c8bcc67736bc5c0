/* SPDX-License-Identifier: MIT */
/* harden/quarantine.h - freed blocks that wait before they are used again.
 *
 * Owns        a queue of addresses; first in, first out.
 * Invariants  at most HAK_QUARANTINE_BLOCKS of them. What a block weighs is the caller's business,
 *             the same when it comes and when it goes.
 * Threads     whoever is inside the heap that has it.
 * Tests       tests/unit/harden/quarantine_test.c
 */
#ifndef HAK_HARDEN_QUARANTINE_H
#define HAK_HARDEN_QUARANTINE_H

#include "base/compiler.h"

#define HAK_QUARANTINE_BLOCKS 4096u

struct quarantine {
    size_t bytes; /* that its blocks weigh */
    uint32_t first;
    uint32_t count;
    void *blocks[HAK_QUARANTINE_BLOCKS];
};

HAK_INLINE bool hak_quarantine_is_full(const struct quarantine *quarantine)
{
    return quarantine->count == HAK_QUARANTINE_BLOCKS;
}

/* The block that waits longest but `index` others, of `count`. */
HAK_INLINE void *hak_quarantine_at(const struct quarantine *quarantine, uint32_t index)
{
    return quarantine->blocks[(quarantine->first + index) % HAK_QUARANTINE_BLOCKS];
}

/* It is not full. */
HAK_INLINE void hak_quarantine_push(struct quarantine *quarantine, void *block, size_t bytes)
{
    quarantine->blocks[(quarantine->first + quarantine->count) % HAK_QUARANTINE_BLOCKS] = block;
    quarantine->count++;
    quarantine->bytes += bytes;
}

/* The block that waits longest; NULL: none waits. */
HAK_INLINE void *hak_quarantine_first(const struct quarantine *quarantine)
{
    return quarantine->count == 0 ? NULL : quarantine->blocks[quarantine->first];
}

/* Lets the first block go, which weighs `bytes`. */
HAK_INLINE void hak_quarantine_pop(struct quarantine *quarantine, size_t bytes)
{
    quarantine->first = (quarantine->first + 1) % HAK_QUARANTINE_BLOCKS;
    quarantine->count--;
    quarantine->bytes -= bytes;
}

#endif
