/* SPDX-License-Identifier: MIT */
/* misuse/quarantine.h - freed blocks that wait before they are reused.
 *
 * Owns        a queue of addresses, first in, first out; and a few that have left it, to be flushed
 *             together.
 * Invariants  at most HAK_QUARANTINE_BLOCKS wait and HAK_QUARANTINE_GATHERED gather. What a block
 *             weighs is the caller's business, the same when it comes and when it goes.
 * Threads     the one whose cache has it; others may peek.
 * Tests       tests/unit/misuse/quarantine_test.c
 */
#ifndef HAK_MISUSE_QUARANTINE_H
#define HAK_MISUSE_QUARANTINE_H

#include "base/atomic.h"
#include "base/compiler.h"

#define HAK_QUARANTINE_BLOCKS 4096u

#define HAK_QUARANTINE_GATHERED 32u

struct quarantine {
    size_t bytes;      /* that the blocks of the queue weigh */
    size_t most_bytes; /* that they may, with so many caches */
    size_t span_bytes; /* that large ones among them take up, whatever they weigh */
    uint32_t sharers;
    uint32_t first;
    uint32_t count;
    uint32_t gathered_count;
    size_t gathered_bytes;
    void *gathered[HAK_QUARANTINE_GATHERED];
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

/* The same, read by another thread, which may be late. */
HAK_INLINE void *hak_quarantine_peek(const struct quarantine *quarantine, uint32_t index)
{
    uint32_t at = (hak_word_peek(&quarantine->first) + index) % HAK_QUARANTINE_BLOCKS;
    return hak_word_peek(&quarantine->blocks[at]);
}

/* It is not full. */
HAK_INLINE void hak_quarantine_push(struct quarantine *quarantine, void *block, size_t bytes)
{
    uint32_t at = (quarantine->first + quarantine->count) % HAK_QUARANTINE_BLOCKS;
    hak_word_publish(&quarantine->blocks[at], block);
    hak_word_publish(&quarantine->count, quarantine->count + 1);
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
    hak_word_publish(&quarantine->first, (quarantine->first + 1) % HAK_QUARANTINE_BLOCKS);
    hak_word_publish(&quarantine->count, quarantine->count - 1);
    quarantine->bytes -= bytes;
}

/* One that has left the queue; there is room. */
HAK_INLINE void hak_quarantine_gather(struct quarantine *quarantine, void *block, size_t bytes)
{
    hak_word_publish(&quarantine->gathered[quarantine->gathered_count], block);
    hak_word_publish(&quarantine->gathered_count, quarantine->gathered_count + 1);
    quarantine->gathered_bytes += bytes;
}

#endif
