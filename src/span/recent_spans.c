/* SPDX-License-Identifier: MIT */
#include "span/recent_spans.h"

/* A hint: it may be in use by now. Its record stays one. */
static HAK_RACY bool may_fit(const struct span *span, struct span_fit fit, uint32_t most)
{
    return span != NULL && hak_span_fits(span, fit, most);
}

struct span *hak_recent_take_aligned(struct recent_spans *recent, struct span_fit fit,
                                     uint32_t most, struct span **unfit)
{
    *unfit = NULL;
    for (uint32_t i = 0; i < HAK_RECENT_PLACES; i++) {
        if (!may_fit(hak_recent_span(hak_load_relaxed(&recent->places[i])), fit, most))
            continue;
        struct span *span = hak_recent_span(hak_recent_exchange(&recent->places[i], 0));
        if (span == NULL || hak_span_fits(span, fit, most))
            return span;
        *unfit = span; /* another one came in between */
        return NULL;
    }
    return NULL;
}

/* Whose turn it is to leave. */
static _Atomic uintptr_t *next_place(struct recent_spans *recent)
{
    uint32_t turn = hak_load_relaxed(&recent->turn);
    hak_store_relaxed(&recent->turn, turn + 1);
    return &recent->places[turn % HAK_RECENT_PLACES];
}

struct span *hak_recent_keep(struct recent_spans *recent, struct span *span)
{
    _Atomic uintptr_t *place = hak_recent_place_for(recent, span->count);
    return hak_recent_put(place != NULL ? place : next_place(recent), span);
}

struct span *hak_recent_pop_excess(struct recent_spans *recent)
{
    bool is_excess = hak_recent_bytes(recent) > HAK_RECENT_GRANULES_MOST * HAK_GRANULE_BYTES;
    return is_excess ? hak_recent_pop(recent) : NULL;
}

struct span *hak_recent_pop(struct recent_spans *recent)
{
    uint32_t turn = hak_load_relaxed(&recent->turn);
    for (uint32_t i = 0; i < HAK_RECENT_PLACES; i++) {
        _Atomic uintptr_t *place = &recent->places[turn++ % HAK_RECENT_PLACES];
        uintptr_t value = hak_load_relaxed(place) == 0 ? 0 : hak_recent_exchange(place, 0);
        if (value == 0)
            continue;
        hak_store_relaxed(&recent->turn, turn);
        return hak_recent_span(value);
    }
    return NULL;
}

uint32_t hak_recent_count(const struct recent_spans *recent)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < HAK_RECENT_PLACES; i++)
        count += hak_load_relaxed(&recent->places[i]) != 0;
    return count;
}

size_t hak_recent_bytes(const struct recent_spans *recent)
{
    size_t granules = 0;
    for (uint32_t i = 0; i < HAK_RECENT_PLACES; i++)
        granules += hak_recent_granules(hak_load_relaxed(&recent->places[i]));
    return granules << HAK_GRANULE_SHIFT;
}
