/* SPDX-License-Identifier: MIT */
#include "span/span_bins.h"

/* Of so many spans of a bin the best one is taken, and if none has room, the first that has, of so
 * many: memory that nobody has used costs more than a long look. */
#define TRIES_FOR_BEST 32
#define TRIES_FOR_ANY 1024

uint32_t hak_span_place(const struct span *span, struct span_fit fit)
{
    if (HAK_LIKELY(fit.alignment == 1))
        return fit.count <= span->count ? span->first : UINT32_MAX;
    size_t base = hak_region.base >> HAK_GRANULE_SHIFT; /* it is the address that must be aligned */
    size_t least = base + span->first;
    size_t first = hak_align_up(least - fit.phase, fit.alignment) + fit.phase - base;
    return first + fit.count <= (size_t)span->first + span->count ? (uint32_t)first : UINT32_MAX;
}

/* The best of the first few spans of one bin, or the first one that has room. */
static struct span *best_of_bin(struct list_link *list, struct span_fit fit)
{
    struct span *best = NULL;
    int tries = 0;
    for (struct list_link *i = list->next; i != list && tries < TRIES_FOR_ANY; i = i->next) {
        if (tries++ >= TRIES_FOR_BEST && best != NULL)
            break;
        struct span *span = hak_list_element(i, struct span, bin_link);
        if (hak_span_place(span, fit) == UINT32_MAX)
            continue;
        if (best == NULL || span->count < best->count ||
            (span->count == best->count && span->first < best->first))
            best = span;
    }
    return best;
}

struct span *hak_span_bins_find(struct span_bins *bins, struct span_fit fit)
{
    uint32_t bin = hak_span_bin_of(fit.count);
    for (uint32_t word = bin / 64; word < HAK_SPAN_BIN_WORDS; word++) {
        uint64_t in_use = bins->in_use[word];
        if (word == bin / 64)
            in_use &= ~hak_bit_low_mask(bin % 64);
        for (; in_use != 0; in_use &= in_use - 1) {
            struct list_link *list = &bins->lists[word * 64 + hak_bit_lowest(in_use)];
            struct span *span = best_of_bin(list, fit);
            if (span != NULL)
                return span;
        }
    }
    return NULL;
}
