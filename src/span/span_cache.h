/* SPDX-License-Identifier: MIT */
/* span/span_cache.h - a few spans of freed large blocks, kept for the next ones of their size.
 *
 * Owns        struct span_cache, a part of each heap, and the list of those that were ever used;
 *             whether it is worth using (docs/adr/0048-span-caches-that-serve.md).
 * Invariants  what is in it is in state SPAN_USED, holds no block and was not moved by realloc. It
 *             keeps its tag: to write it each time would share lines of the tables with other
 *             processors. The oldest comes first; the recent ones (span/recent_spans.h) are apart,
 *             and join the others at a visit, or when newer ones take their places, if there is
 *             room. A cache stays on the list for ever: records of heaps are never freed.
 * Threads     the one inside the heap; any thread has the recent ones, and reads the sums.
 * Tests       tests/unit/span/span_cache_test.c, tests/model/
 */
#ifndef HAK_SPAN_SPAN_CACHE_H
#define HAK_SPAN_SPAN_CACHE_H

#include "span/recent_spans.h"

#define HAK_SPAN_CACHE_SLOTS 16u
/* For a moment, until some are dropped, the recent ones are among them. */
#define HAK_SPAN_CACHE_SPANS_MOST (HAK_SPAN_CACHE_SLOTS + HAK_RECENT_PLACES)
/* Longer spans are worth more to others than the SPAN lock costs. */
#define HAK_SPAN_CACHE_GRANULES_MOST HAK_RECENT_GRANULES_MOST
#define HAK_SPAN_CACHE_BYTES_MOST ((size_t)HAK_SPAN_CACHE_GRANULES_MOST << HAK_GRANULE_SHIFT)

/* Two hits make up for a miss, which costs less. From so many misses on a cache is passed by, but
 * for each so-many-th span, which tells whether sizes repeat again. */
#define HAK_SPAN_CACHE_MISSES_MOST 64u
#define HAK_SPAN_CACHE_USELESS 32u
#define HAK_SPAN_CACHE_PROBE 64u

struct span_cache {
    struct recent_spans recent; /* buffers that come and go need no lock */
    _Atomic uint32_t misses;    /* lately, beyond what hits made up for; a race may undo some */
    _Atomic uint32_t passed;    /* spans; a race loses some */
    _Atomic uint32_t count;
    _Atomic size_t bytes;
    _Atomic size_t hits;
    struct span *spans[HAK_SPAN_CACHE_SPANS_MOST];
    struct span_cache *next; /* constant once listed */
    _Atomic uint32_t is_listed;
};

/* Whether most requests were served. Any thread, as for the next two. */
HAK_INLINE bool hak_span_cache_serves(const struct span_cache *cache)
{
    return hak_load_relaxed(&cache->misses) < HAK_SPAN_CACHE_USELESS;
}

/* Only such a cache has recent spans. */
HAK_INLINE bool hak_span_cache_is_in_use(const struct span_cache *cache)
{
    return hak_load_relaxed(&cache->is_listed) != 0;
}

/* Whether the next freed span is to be put in: it serves, or it is time to look. */
HAK_INLINE bool hak_span_cache_is_useful(struct span_cache *cache)
{
    if (hak_span_cache_serves(cache))
        return true;
    hak_counter_add(&cache->passed, 1);
    return hak_load_relaxed(&cache->passed) % HAK_SPAN_CACHE_PROBE == 0;
}

/* A recent span that fits as those below do; NULL: there is none. *unfit: one that came in between,
 * and is to go elsewhere; or NULL. */
struct span *hak_span_cache_take_recent(struct span_cache *cache, uint32_t count,
                                        uint32_t alignment, struct span **unfit);

/* No recent span fits a request: a miss, if there are any and the others are not searched next. */
void hak_span_cache_note_unfit(struct span_cache *cache);

/* The span that fits `count` granules at a multiple of `alignment` granules (a power of two) best,
 * and of equals the one that came last; NULL: none is long enough and at most a quarter too
 * long. */
struct span *hak_span_cache_take(struct span_cache *cache, uint32_t count, uint32_t alignment);

/* Puts a used span of at most HAK_SPAN_CACHE_GRANULES_MOST granules in; there must be room. */
void hak_span_cache_put(struct span_cache *cache, struct span *span);

/* Puts the recent ones among the others, as some that came just now. These may then be more than
 * HAK_SPAN_CACHE_SLOTS, until some are dropped. */
void hak_span_cache_gather_recent(struct span_cache *cache);

/* Returns spans to the span heap, the oldest first: all that came at or before `before_ms`, and
 * more until at most `keep_bytes` in `keep_count` spans are left. Returns their bytes. */
size_t hak_span_cache_drop(struct span_cache *cache, uint64_t before_ms, size_t keep_bytes,
                           uint32_t keep_count);

/* What all caches hold; exact while no thread works on one. */
struct span_cache_sums {
    size_t bytes;
    size_t count;
    size_t hits; /* how often a cache served a request */
};
struct span_cache_sums hak_span_caches_sum(void);

/* True when the sums and the spans agree. */
bool hak_span_cache_is_sound(const struct span_cache *cache);

#endif
