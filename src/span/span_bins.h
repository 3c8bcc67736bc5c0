/* SPDX-License-Identifier: MIT */
/* span/span_bins.h - free spans of one state by their length, for best fit.
 *
 * Owns        struct span_bins: one bin per count up to 64 granules, then eight a doubling.
 * Invariants  the bit of a bin is set while it holds a span. All zero is empty: a list is started
 *             with its first span, since most bins never have one.
 * Threads     under the lock of their set (span/span_lock.h).
 * Tests       tests/unit/span/span_bins_test.c, tests/unit/span/span_heap_test.c
 */
#ifndef HAK_SPAN_SPAN_BINS_H
#define HAK_SPAN_SPAN_BINS_H

#include "base/bits.h"
#include "span/span.h"

#define HAK_SPAN_BIN_EXACT 64u
#define HAK_SPAN_BIN_COUNT (HAK_SPAN_BIN_EXACT + 20u * 8u)
#define HAK_SPAN_BIN_WORDS ((HAK_SPAN_BIN_COUNT + 63u) / 64u)

struct span_bins {
    uint64_t in_use[HAK_SPAN_BIN_WORDS];
    struct list_link lists[HAK_SPAN_BIN_COUNT];
};

/* The bin in which a span of `count` granules is kept. */
HAK_INLINE uint32_t hak_span_bin_of(uint32_t count)
{
    if (HAK_LIKELY(count <= HAK_SPAN_BIN_EXACT))
        return count - 1;
    uint32_t doubling = hak_bit_highest(count);
    return HAK_SPAN_BIN_EXACT + (doubling - 6) * 8 + ((count >> (doubling - 3)) & 7u);
}

/* Whether the bin holds a span. */
HAK_INLINE bool hak_span_bins_has(const struct span_bins *bins, uint32_t bin)
{
    return (bins->in_use[bin / 64] >> (bin % 64)) & 1;
}

/* Neither depends on whether the bin holds others, which no processor foresees. */
HAK_INLINE void hak_span_bins_insert(struct span_bins *bins, struct span *span)
{
    uint32_t bin = hak_span_bin_of(span->count);
    if (HAK_UNLIKELY(bins->lists[bin].next == NULL))
        hak_list_start(&bins->lists[bin]);
    hak_list_insert_first(&bins->lists[bin], &span->bin_link);
    bins->in_use[bin / 64] |= 1ull << (bin % 64);
}

HAK_INLINE void hak_span_bins_remove(struct span_bins *bins, struct span *span)
{
    uint32_t bin = hak_span_bin_of(span->count);
    hak_list_remove(&span->bin_link);
    bins->in_use[bin / 64] &= ~((uint64_t)hak_list_is_empty(&bins->lists[bin]) << (bin % 64));
}

/* Where in `span` the fit starts; UINT32_MAX when there is no room for it. */
uint32_t hak_span_place(const struct span *span, struct span_fit fit);

/* The best span for the fit among those looked at; NULL: none has room. */
struct span *hak_span_bins_find(struct span_bins *bins, struct span_fit fit);

#endif
