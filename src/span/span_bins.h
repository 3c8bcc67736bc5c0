/* SPDX-License-Identifier: MIT */
/* span/span_bins.h - free spans of one state by their length, for best fit.
 *
 * Owns        struct span_bins: one bin per count up to 64 granules, then eight a doubling.
 * Invariants  the bit of a bin is set while it holds a span; the list of another is not looked at.
 *             All zero is empty.
 * Threads     under the SPAN lock.
 * Tests       tests/unit/span/span_heap_test.c
 */
#ifndef HAK_SPAN_SPAN_BINS_H
#define HAK_SPAN_SPAN_BINS_H

#include "span/span.h"

#define HAK_SPAN_BIN_EXACT 64u
#define HAK_SPAN_BIN_COUNT (HAK_SPAN_BIN_EXACT + 20u * 8u)
#define HAK_SPAN_BIN_WORDS ((HAK_SPAN_BIN_COUNT + 63u) / 64u)

struct span_bins {
    uint64_t in_use[HAK_SPAN_BIN_WORDS];
    struct list_link lists[HAK_SPAN_BIN_COUNT];
};

/* Whether the bin holds a span. */
bool hak_span_bins_has(const struct span_bins *bins, uint32_t bin);

void hak_span_bins_insert(struct span_bins *bins, struct span *span);
void hak_span_bins_remove(struct span_bins *bins, struct span *span);

/* The bin in which a span of `count` granules is kept. */
uint32_t hak_span_bin_of(uint32_t count);

/* Where in `span` the fit starts; UINT32_MAX when there is no room for it. */
uint32_t hak_span_place(const struct span *span, struct span_fit fit);

/* The best span for the fit among those looked at; NULL: none has room. */
struct span *hak_span_bins_find(struct span_bins *bins, struct span_fit fit);

#endif
