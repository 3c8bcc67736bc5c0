/* SPDX-License-Identifier: MIT */
#include "span/recent_spans.h"

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
