/* SPDX-License-Identifier: MIT */
/* span/span.h - the record of a run of granules.
 *
 * Owns        struct span and struct span_fit.
 * Invariants  pieces: the first piece_ends[piece_count - 1] granules of a used span are mappings
 *             that were moved there from elsewhere, but for a guard before the block; the kernel
 *             cannot join them with their neighbours. A free span has none.
 * Threads     a used span belongs to its taker, a free one to the holder of the SPAN lock.
 * Tests       tests/unit/span/
 */
#ifndef HAK_SPAN_SPAN_H
#define HAK_SPAN_SPAN_H

#include "base/list.h"
#include "region/region.h"

/* Bare: its addresses are not mapped. */
enum span_state { SPAN_USED, SPAN_WARM, SPAN_CLEAN, SPAN_BARE };

/* More pieces than a block can gather that doubles from 1 MiB to 1 GiB and never finds room. */
#define HAK_SPAN_PIECES_MOST 12u

struct span {
    void *user;                /* the block in it, when used for one */
    struct list_link bin_link; /* on a bin, when free; on its group, when used and in one */
    struct list_link age_link; /* among all warm spans, oldest first */
    uint64_t freed_ms;
    struct list_link *group; /* of a private heap's large block; else NULL (span/large.h) */
    size_t user_bytes;       /* bytes from `user` to the end of the span */
    uint32_t first;
    uint32_t count;
    uint32_t state;      /* enum span_state */
    uint32_t epoch;      /* of the heap when it last became free */
    uint32_t node;       /* on whose memory it lies, where it is warm */
    bool is_divided;     /* its mappings may end at superslabs, too (span/span_move.h) */
    bool began_as_zeros; /* its block did (span/zero.h) */
    uint32_t lean_count; /* places of so many granules, the last of each hardly used; or 0 */
    uint32_t piece_count;
    uint32_t piece_ends[HAK_SPAN_PIECES_MOST]; /* granules from `first`, rising */
};

/* A request: `count` granules, the address of the first one `phase` granules (below `alignment`)
 * beyond a multiple of `alignment` granules, a power of two. */
struct span_fit {
    uint32_t count;
    uint32_t alignment;
    uint32_t phase;
};

HAK_INLINE struct granule_range hak_span_granules(const struct span *span)
{
    return (struct granule_range){span->first, span->count};
}

HAK_INLINE size_t hak_span_bytes(const struct span *span)
{
    return (size_t)span->count << HAK_GRANULE_SHIFT;
}

#endif
