/* SPDX-License-Identifier: MIT */
/* span/large_block.h - how a large block lies in its span, and what makes it live.
 *
 * Owns        nothing.
 * Invariants  the same span gives a block of the same size the same start.
 * Threads     of a span, the thread that has it; the exchange of `user` decides between two frees.
 * Tests       tests/unit/span/large_test.c, tests/unit/span/large_recent_test.c
 */
#ifndef HAK_SPAN_LARGE_BLOCK_H
#define HAK_SPAN_LARGE_BLOCK_H

#include "base/bits.h"
#include "misuse/report.h"
#include "span/span.h"

/* Blocks with this alignment or less may start at any cache line. */
#define HAK_COLOUR_ALIGNMENT_MOST HAK_CACHE_LINE_BYTES
#define HAK_COLOURS 16u
/* Sixteenths of a line that the start moves on with each granule. Of all below 256 it gives four
 * neighbours, and sixteen, the most different starts, powers of two and a granule weighing most. */
#define HAK_COLOUR_MULTIPLIER 81u

HAK_INLINE uint32_t hak_large_granules(size_t bytes)
{
    return (uint32_t)((bytes + HAK_GRANULE_BYTES - 1) >> HAK_GRANULE_SHIFT);
}

/* Bytes to leave before the block, so that large blocks do not all fall into the same cache sets,
 * and a load from one seems not to depend on a store to another. The same place has always the same
 * start: its lines may be cached still. */
HAK_INLINE size_t hak_large_colour_bytes(uint32_t first, size_t room_bytes, size_t alignment)
{
    uint32_t lines = (uint32_t)hak_least(room_bytes / HAK_CACHE_LINE_BYTES + 1, HAK_COLOURS);
    if (alignment > HAK_COLOUR_ALIGNMENT_MOST || lines == 1)
        return 0;
    uint32_t colour = first * HAK_COLOUR_MULTIPLIER >> 4;
    /* A constant spares nearly every block a division. */
    colour = HAK_LIKELY(lines == HAK_COLOURS) ? colour % HAK_COLOURS : colour % lines;
    return (size_t)colour * HAK_CACHE_LINE_BYTES;
}

/* The span holds a block from now on, which is returned. */
HAK_INLINE void *hak_large_begin_block(struct span *span, size_t before)
{
    void *block = (char *)hak_granule_address(span->first) + before;
    hak_store_relaxed(&span->user_bytes, hak_span_bytes(span) - before);
    hak_store_relaxed(&span->user, block);
    return block;
}

/* Its block is live no more. The span keeps its tag until it goes elsewhere than into a cache. */
HAK_INLINE void hak_large_withdraw(struct span *span, void *block)
{
    void *expected = block;
    /* acquire: orders this free after a competing one; the loser is a double free */
    if (HAK_UNLIKELY(!hak_cas_acquire(&span->user, &expected, NULL)))
        hak_misuse("double free", block, hak_load_relaxed(&span->user_bytes), "already free");
}

#endif
