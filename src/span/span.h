/* SPDX-License-Identifier: MIT */
/* span/span.h - the record of a run of granules.
 *
 * Owns        struct span and struct span_fit.
 * Invariants  pieces: the first piece_ends[piece_count - 1] granules of a used span are mappings
 *             that were moved there from elsewhere, but for a guard before the block; the kernel
 *             cannot join them with their neighbours. A free span has none.
 *             A span with a live block has a tag and an owner entry, and keeps them in a span
 *             cache; what is free has no tag.
 * Threads     a used span belongs to its taker, a free one to the holder of its set's lock, or of
 *             SPAN if it is clean or bare.
 * Tests       tests/unit/span/
 */
#ifndef HAK_SPAN_SPAN_H
#define HAK_SPAN_SPAN_H

#include "base/list.h"
#include "region/tag_map.h"

/* Bare: its addresses are not mapped. */
enum span_state { SPAN_USED, SPAN_WARM, SPAN_CLEAN, SPAN_BARE };

/* More pieces than a block can gather that doubles from 1 MiB to 1 GiB and never finds room. */
#define HAK_SPAN_PIECES_MOST 12u

struct span {
    _Atomic(void *) user;      /* the live block in it; NULL: it has none */
    struct list_link bin_link; /* on a bin, when free; on its group, when used and in one */
    struct list_link age_link; /* among the warm spans of its set, oldest first */
    uint64_t freed_ms;
    struct list_link *group;   /* of a private heap's large block; else NULL (span/large.h) */
    _Atomic size_t user_bytes; /* from `user` to the end of the span */
    uint32_t first;
    uint32_t count;
    uint32_t state;      /* enum span_state */
    uint32_t epoch;      /* of the heap when it last became free */
    uint32_t node;       /* on whose memory it lies, where it is warm */
    uint16_t set;        /* whose it is when free and warm (span/span_free.h) */
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

/* Whether it has enough granules, `most` at most, and is aligned as asked, with a phase of 0. */
HAK_INLINE bool hak_span_fits(const struct span *span, struct span_fit fit, uint32_t most)
{
    size_t address = (hak_region.base >> HAK_GRANULE_SHIFT) + span->first;
    return span->count >= fit.count && span->count <= most && (address & (fit.alignment - 1)) == 0;
}

/* The span that the tag of its first granule names, NULL: none. It has a live block, or is in a
 * span cache. For threads that do not have it: a hint. */
HAK_INLINE struct span *hak_span_named_at(size_t granule)
{
    struct span *span = hak_tag_read(granule) == HAK_TAG_SPAN ? hak_owner_read(granule) : NULL;
    return ((uintptr_t)span & 1) == 0 ? span : NULL; /* or it was freed meanwhile */
}

/* The same, if its block is live. */
HAK_INLINE struct span *hak_span_live_at(size_t granule)
{
    struct span *span = hak_span_named_at(granule);
    return span != NULL && hak_load_relaxed(&span->user) != NULL ? span : NULL;
}

/* Before the span goes elsewhere. */
HAK_INLINE void hak_span_unname(struct span *span)
{
    hak_tag_write(span->first, 1, HAK_TAG_NONE);
    hak_owner_write(span->first, 1, NULL);
}

#endif
