/* SPDX-License-Identifier: MIT */
/* tests/model/account.h - sends everything home and proves that every granule is accounted for.
 *
 * Owns        the end of every model test, and the check of a thread's cache, a heap and the spans.
 * Invariants  afterwards nothing is live, cached or warm: the committed window is clean spans and
 *             wholly free superslabs, and neighbouring spans are one.
 * Threads     called when no other thread uses hakmem.
 * Tests       tests/model/
 */
#ifndef TESTS_MODEL_ACCOUNT_H
#define TESTS_MODEL_ACCOUNT_H

#include "../check.h"
#include "api/api.h"
#include "hardened/waiting.h"
#include "heap/cache_list.h"
#include "heap/heaps.h"
#include "heap/private_heap.h"
#include "process/background.h"
#include "process/reclaim.h"
#include "process/slow_path.h"
#include "process/start.h"
#include "region/tag_map.h"
#include "slab/superslab_pool.h"
#include "span/large.h"
#include "span/span_heap.h"

/* That what this thread allocates from is sound. */
static inline void own_heap_check(void)
{
    struct cache *cache = hak_thread_cache();
    CHECK(cache != NULL && hak_cache_is_sound(cache));
    struct heap *heap = hak_heap_enter();
    CHECK(heap != NULL && hak_heap_is_sound(heap));
    hak_heap_leave(heap);
    CHECK(hak_span_heap_is_sound());
}

static inline void cache_empty(struct cache *cache)
{
    hak_cache_begin(cache);
    hak_waiting_drain(cache);
    hak_cache_flush_all(cache);
    CHECK(hak_cache_is_sound(cache));
    hak_cache_end(cache);
}

static inline void heap_empty(struct heap *heap, enum heap_access access, void *context)
{
    (void)context;
    CHECK_EQ(access, HEAP_ENTERED);
    hak_heap_tidy(heap);
    CHECK(hak_heap_is_sound(heap));
}

/* Again and again, for frees into slabs that moved are forwarded from one heap to another. The
 * background thread may be inside a heap, and not run, for longer than a visit waits. */
static inline void heaps_empty(void)
{
    hak_background_pause();
    for (int round = 0; round < 3; round++) {
        hak_heaps_visit(heap_empty, NULL);
        hak_private_visit(heap_empty, NULL);
    }
    hak_background_resume();
}

static inline void heaps_empty_all(void)
{
    CHECK(hak_thread_cache() != NULL);
    hak_caches_drain_idle(UINT64_MAX); /* of processors that this thread is not on */
    for (struct cache *i = hak_caches_first(); i != NULL; i = i->next)
        cache_empty(i);
    heaps_empty();
}

/* Free spans and granules outside of them, walking the window from edge to edge. */
static inline uint32_t count_free_spans(size_t *other_granules)
{
    size_t granules = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    uint32_t spans = 0;
    *other_granules = 0;
    for (size_t at = 0; at < granules;) {
        uintptr_t record = (uintptr_t)hak_owner_read(at);
        bool is_lost = hak_tag_read(at) == HAK_TAG_HOLE;
        CHECK_EQ(hak_tag_read(at), is_lost ? HAK_TAG_HOLE : HAK_TAG_NONE);
        if (is_lost || (record & 1) == 0) {
            ++*other_granules;
            at++;
            continue;
        }
        const struct span *span = (const struct span *)(record - 1);
        CHECK_EQ(span->first, at);
        CHECK(span->count > 0);
        CHECK_EQ(hak_owner_read(at + span->count - 1), record);
        spans++;
        at += span->count;
    }
    return spans;
}

static inline void check_nothing_is_live(void)
{
    hak_background_pause();
    heaps_empty_all();
    CHECK_EQ(hak_slab_record_count(), 0);
    CHECK_EQ(hak_large_live_bytes(), 0);
    hak_reclaim_purge_all();
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK_EQ(hak_pool_warm_count(), 0);
    CHECK(hak_span_heap_is_sound());
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    size_t pool_bytes = hak_pool_superslab_count() * HAK_SUPERSLAB_BYTES;
    size_t lost_bytes = hak_span_lost_bytes();
    CHECK_EQ(hak_span_clean_bytes() + pool_bytes + lost_bytes, committed);
    size_t others;
    uint32_t spans = count_free_spans(&others);
    CHECK_EQ(others << HAK_GRANULE_SHIFT, pool_bytes + lost_bytes);
    CHECK(lost_bytes > 0 || spans <= hak_pool_superslab_count() + 1);
    CHECK(hak_pool_superslab_count() <= 1); /* one free superslab is kept */
    hak_background_resume();
}

#endif
