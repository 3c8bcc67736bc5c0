/* SPDX-License-Identifier: MIT */
#include "span/large.h"

#include "span/huge_blocks.h"
#include "span/large_block.h"
#include "span/span_cache.h"

void *hak_large_take_recent(struct span_cache *cache, size_t bytes)
{
    struct span *unfit;
    struct span *span = hak_span_cache_take_recent(cache, hak_large_granules(bytes), 1, &unfit);
    if (HAK_UNLIKELY(unfit != NULL))
        hak_large_release(unfit);
    if (span == NULL)
        return NULL;
    span->began_as_zeros = false;
    return hak_large_begin_block(
        span,
        hak_large_colour_bytes(span->first, hak_span_bytes(span) - bytes, HAK_ORDINARY_ALIGNMENT));
}

bool hak_large_give_recent(struct span_cache *cache, void *block, struct span **displaced)
{
    struct span *span = hak_span_named_at(hak_granule_of(block));
    _Atomic uintptr_t *place;
    if (span == NULL || span->group != NULL || hak_load_relaxed(&span->user) != block ||
        !hak_span_cache_is_in_use(cache) || !hak_span_cache_serves(cache) ||
        !hak_large_may_keep(span) ||
        (place = hak_recent_place_for(&cache->recent, span->count)) == NULL)
        return false;
    hak_huge_block_end(span);
    hak_large_withdraw(span, block);
    *displaced = hak_recent_put(place, span);
    return true;
}
