/* SPDX-License-Identifier: MIT */
/* span/recent_spans.h - the few spans that were freed last, without a lock.
 *
 * Owns        struct recent_spans, a part of each span cache.
 * Invariants  a place has a span's record and, in the bits below its alignment, the granules of the
 *             span, so that a look needs no record. Who exchanges a place for another value has
 *             what was there. Together they have no more than HAK_RECENT_GRANULES_MOST, but for
 *             what threads put there at the same time. Of more than HAK_RECENT_GRANULES_MASK the
 *             sum is wrong: then one more is let in.
 * Threads     any.
 * Tests       tests/unit/span/recent_spans_test.c, tests/interleave/span_interleave.c
 */
#ifndef HAK_SPAN_RECENT_SPANS_H
#define HAK_SPAN_RECENT_SPANS_H

#include "base/check.h"
#include "span/span.h"

#define HAK_RECENT_PLACES 4u
/* 1 MiB, and the granule that lets such a block start at any cache line (span/large.h). */
#define HAK_RECENT_GRANULES_MOST 17u

struct recent_spans {
    _Atomic uintptr_t places[HAK_RECENT_PLACES]; /* 0: empty */
    _Atomic uint32_t turn;                       /* whose it is to leave: a hint */
};

/* Records are aligned to cache lines. */
#define HAK_RECENT_GRANULES_MASK ((uintptr_t)HAK_CACHE_LINE_BYTES - 1)
hak_static_assert(HAK_RECENT_GRANULES_MOST <= HAK_RECENT_GRANULES_MASK, "a span's granules fit");

HAK_INLINE struct span *hak_recent_span(uintptr_t value)
{
    return (struct span *)(value & ~HAK_RECENT_GRANULES_MASK);
}

HAK_INLINE uint32_t hak_recent_granules(uintptr_t value)
{
    return (uint32_t)(value & HAK_RECENT_GRANULES_MASK);
}

/* acq_rel: each is the other's partner. Who takes a span finds its record as it was left. */
HAK_INLINE uintptr_t hak_recent_exchange(_Atomic uintptr_t *place, uintptr_t value)
{
    return hak_exchange_acq_rel(place, value);
}

/* The shortest of those with `least` to `most` granules; NULL: there is none. *unfit: another one
 * that came in between, and is to go elsewhere; or NULL. */
HAK_INLINE struct span *hak_recent_take(struct recent_spans *recent, uint32_t least, uint32_t most,
                                        struct span **unfit)
{
    _Atomic uintptr_t *place = NULL;
    uintptr_t seen = 0;
    uint32_t best = most + 1;
    *unfit = NULL;
    for (uint32_t i = 0; i < HAK_RECENT_PLACES && best > least; i++) {
        uintptr_t value = hak_load_relaxed(&recent->places[i]);
        uint32_t granules = hak_recent_granules(value);
        if (granules < least || granules >= best)
            continue;
        place = &recent->places[i];
        seen = value;
        best = granules;
    }
    if (place == NULL)
        return NULL;
    uintptr_t value = hak_recent_exchange(place, 0);
    uint32_t granules = hak_recent_granules(value);
    if (HAK_LIKELY(value == seen) || (granules >= least && granules <= most))
        return hak_recent_span(value);
    *unfit = hak_recent_span(value);
    return NULL;
}

/* The place for a span of so many granules; NULL: one must leave first. Records add nothing to the
 * granules of a sum of places. */
HAK_INLINE _Atomic uintptr_t *hak_recent_place_for(struct recent_spans *recent, uint32_t count)
{
    uintptr_t sum = count;
    _Atomic uintptr_t *place = NULL;
    for (uint32_t i = HAK_RECENT_PLACES; i-- > 0;) {
        uintptr_t value = hak_load_relaxed(&recent->places[i]);
        sum += value;
        if (value == 0)
            place = &recent->places[i];
    }
    return hak_recent_granules(sum) <= HAK_RECENT_GRANULES_MOST ? place : NULL;
}

/* Puts a span there. Returns one that came in between, and is to go elsewhere; or NULL. */
HAK_INLINE struct span *hak_recent_put(_Atomic uintptr_t *place, struct span *span)
{
    hak_assert(((uintptr_t)span & HAK_RECENT_GRANULES_MASK) == 0 && span->count != 0 &&
               span->count <= HAK_RECENT_GRANULES_MOST);
    return hak_recent_span(hak_recent_exchange(place, (uintptr_t)span | span->count));
}

/* The same as hak_recent_take, of those whose address is a multiple of `fit.alignment` granules.
 * The first one that fits will do. */
struct span *hak_recent_take_aligned(struct recent_spans *recent, struct span_fit fit,
                                     uint32_t most, struct span **unfit);

/* Puts a span into a place for it; if there is none, into that of the one that came first, or so.
 * Returns one that is to go elsewhere; or NULL. */
struct span *hak_recent_keep(struct recent_spans *recent, struct span *span);

/* Takes out the one that came first, or so; NULL: there is none. */
struct span *hak_recent_pop(struct recent_spans *recent);

/* The same while there are more granules than may be. */
struct span *hak_recent_pop_excess(struct recent_spans *recent);

/* How many there are, and their bytes. */
uint32_t hak_recent_count(const struct recent_spans *recent);
size_t hak_recent_bytes(const struct recent_spans *recent);

#endif
