/* SPDX-License-Identifier: MIT */
#include "span/span_cache.h"

#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"
#include "span/span_heap.h"

#include <string.h>

/* A cached span may exceed the request by this share. */
#define EXCESS_SHARE 4

static _Atomic(struct span_cache *) caches;

static void list(struct span_cache *cache)
{
    struct span_cache *first = hak_load_relaxed(&caches);
    do
        cache->next = first;
    while (!hak_cas_release(&caches, &first, cache)); /* partner: the acquire in the sum */
    hak_store_relaxed(&cache->is_listed, 1); /* or a copy of the process leaves it out */
}

/* Closes the gap that `removed` spans from slot `first` on left. */
static void close_gap(struct span_cache *cache, uint32_t first, uint32_t removed, size_t bytes)
{
    uint32_t left = hak_load_relaxed(&cache->count) - removed;
    memmove(&cache->spans[first], &cache->spans[first + removed],
            (left - first) * sizeof cache->spans[0]);
    hak_store_relaxed(&cache->count, left);
    hak_store_relaxed(&cache->bytes, hak_load_relaxed(&cache->bytes) - bytes);
}

static void note_search(struct span_cache *cache, bool is_miss)
{
    uint32_t misses = hak_load_relaxed(&cache->misses);
    if (is_miss)
        misses = (uint32_t)hak_least(misses + 2, HAK_SPAN_CACHE_MISSES_MOST);
    else
        misses = (uint32_t)hak_excess(misses, 1);
    hak_store_relaxed(&cache->misses, misses);
}

/* The longest span for a request of so many granules. */
static uint32_t longest_for(uint32_t count)
{
    return count + count / EXCESS_SHARE;
}

static struct span *serve(struct span *span, uint32_t count)
{
    if (span->count == count)
        span->lean_count = 0; /* the block may fill it to its end */
    return span;
}

struct span *hak_span_cache_take_recent(struct span_cache *cache, uint32_t count,
                                        uint32_t alignment, struct span **unfit)
{
    struct recent_spans *recent = &cache->recent;
    uint32_t most = longest_for(count);
    struct span_fit fit = {count, alignment, 0};
    struct span *span = HAK_LIKELY(alignment == 1)
                            ? hak_recent_take(recent, count, most, unfit)
                            : hak_recent_take_aligned(recent, fit, most, unfit);
    if (span == NULL)
        return NULL;
    hak_counter_add_here(&cache->hits, (size_t)1);
    if (hak_load_relaxed(&cache->misses) != 0)
        note_search(cache, false);
    return serve(span, count);
}

void hak_span_cache_note_unfit(struct span_cache *cache)
{
    if (hak_recent_count(&cache->recent) != 0 && hak_load_relaxed(&cache->count) == 0)
        note_search(cache, true);
}

void hak_span_cache_gather_recent(struct span_cache *cache)
{
    struct span *span;
    while (hak_load_relaxed(&cache->count) < HAK_SPAN_CACHE_SPANS_MOST &&
           (span = hak_recent_pop(&cache->recent)) != NULL)
        hak_span_cache_put(cache, span);
}

struct span *hak_span_cache_take(struct span_cache *cache, uint32_t count, uint32_t alignment)
{
    struct span_fit fit = {count, alignment, 0};
    uint32_t best_count = UINT32_MAX;
    uint32_t best = HAK_SPAN_CACHE_SLOTS;
    for (uint32_t i = hak_load_relaxed(&cache->count); i-- > 0;) {
        uint32_t span_count = cache->spans[i]->count;
        if (span_count >= best_count || !hak_span_fits(cache->spans[i], fit, longest_for(count)))
            continue;
        best = i;
        best_count = span_count;
        if (span_count == count)
            break;
    }
    note_search(cache, best == HAK_SPAN_CACHE_SLOTS);
    if (best == HAK_SPAN_CACHE_SLOTS)
        return NULL;
    struct span *span = cache->spans[best];
    hak_counter_add_here(&cache->hits, (size_t)1);
    close_gap(cache, best, 1, hak_span_bytes(span));
    return serve(span, count);
}

void hak_span_cache_put(struct span_cache *cache, struct span *span)
{
    uint32_t count = hak_load_relaxed(&cache->count);
    hak_assert(count < HAK_SPAN_CACHE_SPANS_MOST);
    if (HAK_UNLIKELY(hak_load_relaxed(&cache->is_listed) == 0))
        list(cache);
    span->freed_ms = hak_os_clock_ms();
    cache->spans[count] = span;
    hak_store_relaxed(&cache->count, count + 1);
    hak_store_relaxed(&cache->bytes, hak_load_relaxed(&cache->bytes) + hak_span_bytes(span));
}

size_t hak_span_cache_drop(struct span_cache *cache, uint64_t before_ms, size_t keep_bytes,
                           uint32_t keep_count)
{
    struct span *dropped[HAK_SPAN_CACHE_SPANS_MOST];
    uint32_t count = hak_load_relaxed(&cache->count);
    size_t bytes = hak_load_relaxed(&cache->bytes);
    size_t dropped_bytes = 0;
    uint32_t i = 0;
    for (; i < count; i++) {
        struct span *span = cache->spans[i];
        if (span->freed_ms > before_ms && bytes - dropped_bytes <= keep_bytes &&
            count - i <= keep_count)
            break;
        hak_span_unname(span);
        dropped[i] = span;
        dropped_bytes += hak_span_bytes(span);
    }
    if (i == 0)
        return 0;
    close_gap(cache, 0, i, dropped_bytes);
    hak_span_give_many(dropped, i);
    return dropped_bytes;
}

struct span_cache_sums hak_span_caches_sum(void)
{
    struct span_cache_sums sums = {0, 0, 0};
    /* acquire: partner is the release in list */
    for (const struct span_cache *i = hak_load_acquire(&caches); i != NULL; i = i->next) {
        sums.bytes += hak_load_relaxed(&i->bytes) + hak_recent_bytes(&i->recent);
        sums.count += hak_load_relaxed(&i->count) + hak_recent_count(&i->recent);
        sums.hits += hak_load_relaxed(&i->hits);
    }
    return sums;
}

bool hak_span_cache_is_sound(const struct span_cache *cache)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < hak_load_relaxed(&cache->count); i++) {
        const struct span *span = cache->spans[i];
        if (span->state != SPAN_USED || hak_load_relaxed(&span->user) != NULL)
            return false;
        bytes += hak_span_bytes(cache->spans[i]);
    }
    return bytes == hak_load_relaxed(&cache->bytes);
}
