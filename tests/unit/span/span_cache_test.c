/* SPDX-License-Identifier: MIT */
/* tests/unit/span/span_cache_test.c - large blocks that come back soon are served past the SPAN
 * lock, within bounds. */
#define _GNU_SOURCE
#include "api/api.h"
#include "base/bits.h"
#include "check.h"
#include "hakmem/hakmem.h"
#include "heap/address_info.h"
#include "heap/flush.h"
#include "heap/heaps.h"
#include "policy/policy_table.h"
#include "process/reclaim.h"
#include "process/start.h"
#include "span/large.h"
#include "span/span_cache.h"
#include "span/span_heap.h"
#include "stay.h"
#include "threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* No thread of hakmem's moves spans while they are counted. */
__attribute__((constructor(101))) static void keep_alone(void)
{
    setenv("HAKMEM_MAINTENANCE", "off", 1);
}

static struct span *take(uint32_t count, uint32_t alignment)
{
    bool is_zero;
    CHECK(hak_process_start());
    struct span *span = hak_span_take(count, alignment, &is_zero);
    CHECK(span != NULL);
    return span;
}

TEST(the_best_fit_is_taken_and_of_equals_the_last)
{
    static struct span_cache cache;
    struct span *spans[] = {take(10, 1), take(9, 1), take(9, 1), take(12, 1)};
    for (int i = 0; i < 4; i++)
        hak_span_cache_put(&cache, spans[i]);
    CHECK(hak_span_cache_is_sound(&cache));
    CHECK_EQ(hak_span_caches_sum().bytes, 40 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_span_cache_take(&cache, 9, 1), spans[2]);
    CHECK_EQ(hak_span_cache_take(&cache, 8, 1), spans[1]);
    CHECK_EQ(hak_span_cache_take(&cache, 8, 1), spans[0]);
    CHECK_EQ(hak_span_cache_take(&cache, 13, 1), NULL);
    CHECK_EQ(hak_span_cache_take(&cache, 9, 1), NULL); /* 12 would waste more than a quarter */
    CHECK_EQ(hak_span_cache_take(&cache, 12, 1), spans[3]);
    CHECK_EQ(hak_span_caches_sum().count, 0);
    CHECK_EQ(hak_span_caches_sum().hits, 4);
    CHECK(hak_span_cache_is_sound(&cache));
}

TEST(a_span_that_is_not_aligned_as_asked_stays)
{
    static struct span_cache cache;
    struct span *aligned = take(3, 16);
    struct span *other = take(3, 1);
    while (((hak_region.base >> HAK_GRANULE_SHIFT) + other->first) % 16 == 0)
        other = take(3, 1);
    hak_span_cache_put(&cache, aligned);
    hak_span_cache_put(&cache, other);
    CHECK_EQ(hak_span_cache_take(&cache, 3, 16), aligned);
    CHECK_EQ(hak_span_cache_take(&cache, 3, 16), NULL);
    CHECK_EQ(hak_span_cache_take(&cache, 3, 1), other);
}

TEST(the_oldest_leave_first)
{
    static struct span_cache cache;
    struct span *spans[HAK_SPAN_CACHE_SLOTS];
    for (uint32_t i = 0; i < HAK_SPAN_CACHE_SLOTS; i++) {
        spans[i] = take(3, 1);
        hak_span_cache_put(&cache, spans[i]);
        spans[i]->freed_ms = 1000 + i;
    }
    size_t warm = hak_span_warm_bytes();
    CHECK_EQ(hak_span_cache_drop(&cache, 1001, SIZE_MAX, UINT32_MAX), 6 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_span_cache_drop(&cache, 0, 9 * HAK_GRANULE_BYTES, UINT32_MAX),
             (HAK_SPAN_CACHE_SLOTS - 5) * 3 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_span_cache_drop(&cache, 0, SIZE_MAX, 2), 3 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_span_cache_drop(&cache, 0, SIZE_MAX, 2), 0);
    CHECK_EQ(hak_span_cache_take(&cache, 3, 1), spans[HAK_SPAN_CACHE_SLOTS - 1]);
    CHECK_EQ(hak_span_cache_take(&cache, 3, 1), spans[HAK_SPAN_CACHE_SLOTS - 2]);
    CHECK_EQ(hak_span_warm_bytes() - warm, (HAK_SPAN_CACHE_SLOTS - 2) * 3 * HAK_GRANULE_BYTES);
    CHECK(hak_span_heap_is_sound() && hak_span_cache_is_sound(&cache));
}

/* A block that goes into the cache when it is freed. */
static void *first_of_many(void)
{
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    void *block = hak_malloc(300000);
    CHECK(block != NULL);
    return block;
}

TEST(a_block_that_comes_and_goes_needs_no_lock)
{
    void *first = first_of_many();
    hak_free(first);
    CHECK_EQ(hak_large_live_bytes(), 0);
    CHECK_EQ(hak_large_live_count(), 0);
    size_t held = hak_large_held_bytes();
    for (int i = 0; i < 100; i++) {
        void *block = hak_malloc(300000);
        CHECK_EQ(block, first);
        CHECK_EQ(hak_large_live_bytes(), held);
        hak_free(block);
        CHECK_EQ(hak_large_held_bytes(), held);
    }
    CHECK_EQ(hak_span_caches_sum().hits, 100);
    hak_malloc_trim(0);
    CHECK_EQ(hak_large_held_bytes(), 0);
    CHECK_EQ(hak_span_caches_sum().count, 0);
}

static void put_recent(struct span_cache *cache, struct span *span)
{
    _Atomic uintptr_t *place = hak_recent_place_for(&cache->recent, span->count);
    CHECK(place != NULL);
    CHECK_EQ(hak_recent_put(place, span), NULL);
}

/* The others are behind the lock, which this thread holds. */
TEST(recent_ones_are_taken_and_put_without_the_lock_of_their_heap)
{
    static const size_t bytes[] = {140000, 200000, 300000}; /* three, four and five granules */
    void *blocks[3];
    hak_free(first_of_many());
    hak_malloc_trim(0); /* it is in use, and empty */
    for (int i = 0; i < 3; i++)
        blocks[i] = hak_malloc(bytes[i]);
    struct heap *heap = hak_heap_enter();
    CHECK(heap != NULL && heap == hak_heap_near());
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            hak_free(blocks[i]);
        CHECK_EQ(hak_recent_count(&heap->spans.recent), 3);
        for (int i = 2; i >= 0; i--)
            CHECK_EQ(hak_malloc(bytes[i]), blocks[i]);
    }
    hak_heap_leave(heap);
    CHECK_EQ(hak_span_caches_sum().hits, 9);
}

/* Sizes of one program, then of another: the first ones do not stay for ever. */
TEST(the_place_of_those_that_do_not_come_back_is_taken)
{
    hak_free(first_of_many());
    void *shorts[] = {hak_malloc(150000), hak_malloc(150000), hak_malloc(150000),
                      hak_malloc(150000)};
    void *block = hak_malloc(1000000);
    for (uint32_t i = 0; i < 4; i++)
        hak_free(shorts[i]);
    struct span_cache *cache = &hak_heap_near()->spans;
    CHECK_EQ(hak_recent_bytes(&cache->recent), 12 * HAK_GRANULE_BYTES);
    hak_free(block);
    CHECK_EQ(hak_recent_bytes(&cache->recent), 16 * HAK_GRANULE_BYTES);
    size_t hits = hak_load_relaxed(&cache->hits);
    CHECK_EQ(hak_malloc(1000000), block);
    CHECK_EQ(hak_load_relaxed(&cache->hits), hits + 1);
    CHECK_EQ(hak_large_live_count(), 1);
    CHECK(hak_span_heap_is_sound());
}

/* All have their places: the next one takes that of the first. */
TEST(the_one_that_came_first_makes_room)
{
    void *blocks[HAK_RECENT_PLACES + 1];
    hak_free(first_of_many());
    hak_malloc_trim(0);
    for (uint32_t i = 0; i <= HAK_RECENT_PLACES; i++)
        blocks[i] = hak_malloc(140000);
    struct span *spans[HAK_RECENT_PLACES + 1];
    for (uint32_t i = 0; i <= HAK_RECENT_PLACES; i++) {
        spans[i] = hak_span_named_at(hak_granule_of(blocks[i]));
        hak_free(blocks[i]);
    }
    struct recent_spans *recent = &hak_heap_near()->spans.recent;
    CHECK_EQ(hak_recent_count(recent), HAK_RECENT_PLACES);
    CHECK_EQ(hak_load_relaxed(&hak_heap_near()->spans.count), 0); /* so little keeps no more */
    for (uint32_t i = 1; i <= HAK_RECENT_PLACES; i++)
        CHECK_EQ(hak_recent_pop(recent), spans[i]);
}

TEST(a_recent_one_that_does_not_fit_stays_where_it_is)
{
    static struct span_cache cache;
    struct span *unfit, *span = take(5, 1), *other = take(6, 1);
    CHECK(!hak_span_cache_is_in_use(&cache));
    hak_span_cache_put(&cache, other);
    CHECK(hak_span_cache_is_in_use(&cache));
    put_recent(&cache, span);
    CHECK_EQ(hak_span_caches_sum().count, 2);
    CHECK_EQ(hak_span_caches_sum().bytes, 11 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_span_cache_take_recent(&cache, 6, 1, &unfit), NULL);
    CHECK_EQ(hak_span_cache_take_recent(&cache, 3, 1, &unfit), NULL);
    CHECK_EQ(unfit, NULL);
    CHECK_EQ(hak_span_cache_take_recent(&cache, 4, 1, &unfit), span);
    CHECK_EQ(hak_span_cache_take_recent(&cache, 4, 1, &unfit), NULL);
    put_recent(&cache, span);
    hak_span_cache_gather_recent(&cache);
    CHECK_EQ(hak_load_relaxed(&cache.count), 2);
    CHECK_EQ(hak_recent_count(&cache.recent), 0);
    CHECK(hak_span_cache_is_sound(&cache));
}

/* However many there are: the recent ones join them first. */
TEST(a_full_cache_with_recent_ones_drops_them_all)
{
    static struct span_cache cache;
    for (uint32_t i = 0; i < HAK_SPAN_CACHE_SLOTS; i++)
        hak_span_cache_put(&cache, take(3, 1));
    for (uint32_t recent = 1; recent <= HAK_RECENT_PLACES; recent++) {
        for (uint32_t i = 0; i < recent; i++)
            put_recent(&cache, take(3, 1));
        hak_large_drop_cached(&cache, 0, SIZE_MAX, UINT32_MAX);
        CHECK_EQ(hak_load_relaxed(&cache.count), HAK_SPAN_CACHE_SLOTS);
        CHECK(hak_span_cache_is_sound(&cache));
    }
    for (uint32_t i = 0; i < HAK_RECENT_PLACES; i++)
        put_recent(&cache, take(3, 1));
    hak_large_drop_cached(&cache, UINT64_MAX, 0, 0);
    CHECK_EQ(hak_span_caches_sum().count, 0);
}

TEST(a_cleared_block_from_the_cache_is_clear)
{
    unsigned char *block = first_of_many();
    memset(block, 0xa5, 300000);
    hak_free(block);
    CHECK_EQ(hak_span_caches_sum().count, 1);
    unsigned char *cleared = hak_calloc(3, 100000);
    CHECK_EQ(cleared, block);
    CHECK_BYTES(cleared, 300000, 0);
}

TEST(a_cache_stays_within_its_share)
{
    enum { COUNT = 200 };
    static void *blocks[COUNT];
    size_t longest = HAK_SPAN_CACHE_BYTES_MOST, recent_most_bytes = 0;
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = hak_malloc(200000 + i % 8 * 100000);
    size_t peak = hak_large_peak_bytes();
    CHECK_EQ(peak, hak_large_live_bytes());
    size_t most = hak_least(peak / 100 * hak_policy_read(span_cache_percent),
                            hak_policy_read(span_cache_bytes));
    hak_free(blocks[0]);
    for (size_t i = 1; i < COUNT; i++) {
        struct heap *heap = hak_heap_near();
        uint64_t visit_ms = hak_load_relaxed(&heap->sweep_visit_ms);
        size_t before = hak_load_relaxed(&heap->spans.bytes);
        hak_free(blocks[i]);
        size_t others = hak_load_relaxed(&heap->spans.bytes);
        size_t recent_bytes = hak_recent_bytes(&heap->spans.recent);
        recent_most_bytes = hak_most(recent_most_bytes, recent_bytes);
        CHECK(recent_bytes <= longest && others <= most);
        /* A visit puts recent ones among the others. */
        if (others > before && hak_load_relaxed(&heap->sweep_visit_ms) == visit_ms)
            CHECK(others <= most - recent_bytes);
    }
    CHECK(recent_most_bytes > longest / 2 && hak_span_caches_sum().bytes > recent_most_bytes);
    CHECK(hak_span_cache_is_sound(&hak_heap_near()->spans));
    CHECK_EQ(hak_large_live_bytes(), 0);
}

static void *use_a_large_block(void *unused)
{
    hak_free(first_of_many());
    CHECK_EQ(hak_span_caches_sum().count, 1);
    return unused;
}

TEST(what_the_large_blocks_of_a_thread_left_serves_others_when_it_has_ended)
{
    in_thread(use_a_large_block, NULL);
    CHECK_EQ(hak_span_caches_sum().count, 1);
    CHECK_EQ(hak_large_live_bytes(), 0);
    hak_malloc_trim(0);
    CHECK_EQ(hak_span_caches_sum().count, 0);
}

TEST(a_block_that_was_freed_into_the_cache_cannot_be_freed_again)
{
    void *block = first_of_many();
    hak_free(block);
    CHECK_EQ(hak_span_caches_sum().count, 1);
    CHECK_ABORTS(hak_free(block), "hakmem: double free: pointer");
    CHECK_ABORTS(hak_realloc(block, 400000), "hakmem: invalid realloc: pointer");
    CHECK_ABORTS(hak_malloc_usable_size(block), "already free");
}

/* Its tag stays: to change it there and back, threads on two processors would take the line of
 * their spans' tags from each other each time. */
TEST(what_is_in_the_cache_keeps_its_tag_and_is_no_block_to_anybody)
{
    char *block = first_of_many();
    uint32_t granule = hak_granule_of(block);
    CHECK_EQ(hak_span_live_at(granule)->first, granule);
    hak_free(block);
    CHECK_EQ(hak_tag_read(granule), HAK_TAG_SPAN);
    CHECK(hak_span_named_at(granule) != NULL);
    CHECK_EQ(hak_span_live_at(granule), NULL);
    CHECK(!hak_large_is_block(block));
    CHECK_EQ(hak_address_info(block + 200000).kind, ADDRESS_FREE);
    CHECK_EQ(hakmem_is_owned(block), 0);
    CHECK_EQ(hak_malloc(300000), block);
    CHECK_EQ(hakmem_is_owned(block), 1);
    CHECK_EQ(hak_address_info(block + 200000).kind, ADDRESS_LARGE);
    hak_free(block);
    hak_malloc_trim(0);
    CHECK_EQ(hak_tag_read(granule), HAK_TAG_NONE);
    CHECK_EQ(hak_span_named_at(granule), NULL);
}

TEST(a_cache_that_misses_is_passed_by_until_sizes_repeat)
{
    static struct span_cache cache;
    hak_span_cache_put(&cache, take(3, 1));
    for (uint32_t i = 0; i < HAK_SPAN_CACHE_MISSES_MOST; i++)
        CHECK_EQ(hak_span_cache_take(&cache, 9, 1), NULL);
    uint32_t probes = 0;
    for (uint32_t i = 0; i < 4 * HAK_SPAN_CACHE_PROBE; i++)
        probes += hak_span_cache_is_useful(&cache);
    CHECK_EQ(probes, 4);
    for (uint32_t i = 0; i < HAK_SPAN_CACHE_MISSES_MOST; i++)
        hak_span_cache_put(&cache, hak_span_cache_take(&cache, 3, 1));
    for (uint32_t i = 0; i < 2 * HAK_SPAN_CACHE_PROBE; i++)
        CHECK(hak_span_cache_is_useful(&cache));
}

/* 63 frees pass it by, the next one makes its span a recent one. */
TEST(a_cache_that_is_passed_by_is_used_again_when_a_recent_one_serves)
{
    static struct span_cache cache;
    struct span *unfit, *span = take(3, 1);
    hak_span_cache_put(&cache, take(5, 1));
    for (uint32_t i = 0; i < HAK_SPAN_CACHE_MISSES_MOST; i++)
        CHECK_EQ(hak_span_cache_take(&cache, 9, 1), NULL);
    for (uint32_t i = 0; i < HAK_SPAN_CACHE_MISSES_MOST * HAK_SPAN_CACHE_PROBE; i++) {
        if (!hak_span_cache_is_useful(&cache))
            continue;
        put_recent(&cache, span);
        CHECK_EQ(hak_span_cache_take_recent(&cache, 3, 1, &unfit), span);
    }
    for (uint32_t i = 0; i < 2 * HAK_SPAN_CACHE_PROBE; i++)
        CHECK(hak_span_cache_is_useful(&cache));
}

TEST(a_request_that_no_recent_one_fits_counts_as_a_miss)
{
    static struct span_cache cache;
    struct large_request request = {9 * HAK_GRANULE_BYTES, 16, LARGE_ANY, LARGE_ROOMY, 0};
    hak_span_cache_put(&cache, take(3, 1));
    CHECK(hak_span_cache_take(&cache, 3, 1) != NULL);
    CHECK_EQ(hak_large_find_recent(&cache, &request), NULL);
    CHECK_EQ(hak_load_relaxed(&cache.misses), 0); /* there was none */
    put_recent(&cache, take(3, 1));
    for (uint32_t i = 0; i < HAK_SPAN_CACHE_USELESS; i++)
        CHECK_EQ(hak_large_find_recent(&cache, &request), NULL);
    CHECK(hak_load_relaxed(&cache.misses) >= HAK_SPAN_CACHE_USELESS);
}

TEST(a_block_aligned_to_granules_comes_and_goes_as_well)
{
    hak_free(first_of_many());
    void *block = hak_aligned_alloc(4 * HAK_GRANULE_BYTES, 300000);
    struct span_cache *cache = &hak_heap_near()->spans;
    size_t hits = hak_load_relaxed(&cache->hits);
    for (int i = 0; i < 100; i++) {
        hak_free(block);
        CHECK_EQ(hak_aligned_alloc(4 * HAK_GRANULE_BYTES, 300000), block);
    }
    CHECK_EQ(hak_load_relaxed(&cache->hits), hits + 100);
}

static _Atomic int is_over;

static void *use_large_blocks_on_processor_1(void *unused)
{
    if (!stay_on(1))
        SKIP("there is no processor 1");
    for (int i = 0; i < 1000000 && hak_heap_count() < 2; i++)
        hak_free(hak_malloc(300000));
    is_over = 1;
    return unused;
}

/* Or two processors would take the recent ones from each other. */
TEST(a_processor_whose_threads_use_large_blocks_only_gets_a_heap)
{
    pthread_t other;
    if (!stay_on(0))
        SKIP("there is no processor 0");
    hak_free(first_of_many());
    CHECK_EQ(hak_heap_count(), 1);
    CHECK_EQ(pthread_create(&other, NULL, use_large_blocks_on_processor_1, NULL), 0);
    while (is_over == 0)
        hak_free(hak_malloc(300000));
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(hak_heap_count(), 2);
}

/* Each is a recent one at a visit. */
TEST(visits_keep_no_more_recent_ones_than_the_cache_may_have)
{
    enum { COUNT = 16 };
    static void *blocks[COUNT];
    size_t longest = HAK_SPAN_CACHE_GRANULES_MOST * HAK_GRANULE_BYTES;
    hak_store_relaxed(&hak_policy.decay_ms, hak_os_clock_ms()); /* nothing is old */
    hak_free(first_of_many());
    for (int i = 0; i < COUNT; i++)
        blocks[i] = hak_malloc(1000000);
    for (int i = 0; i < COUNT; i++) {
        bool is_done;
        hak_free(blocks[i]);
        hak_store_relaxed(&hak_heap_near()->sweep_visit_ms, 0); /* none was a moment ago */
        hak_reclaim_visit(&is_done);
        CHECK(hak_span_caches_sum().bytes > 0);
        CHECK(hak_span_caches_sum().bytes <= hak_most(hak_flush_spans_most(), longest));
    }
}
