/* SPDX-License-Identifier: MIT */
/* tests/unit/span/large_recent_test.c - the spans of blocks that were freed last serve the next
 * ones, or everything stays as it was. */
#define _GNU_SOURCE
#include "api/api.h"
#include "check.h"
#include "hakmem/hakmem.h"
#include "heap/heaps.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "span/big_cache.h"
#include "span/span_cache.h"
#include "stay.h"
#include "unit/span/take_large.h"

#define BYTES ((size_t)300000) /* five granules */

static struct span *span_of(const void *block)
{
    return hak_span_named_at(hak_granule_of(block));
}

/* A cache that is in use: such have recent spans. */
static struct span_cache *cache_put_in_use(void)
{
    static struct span_cache cache;
    hak_span_cache_put(&cache, hak_large_end(take_large(3 * HAK_GRANULE_BYTES, 16, LARGE_ANY)));
    return &cache;
}

static struct span_cache *cache_in_use(void)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0); /* freed blocks are kept at once */
    return cache_put_in_use();
}

TEST(a_block_is_freed_and_taken_again_where_it_was)
{
    struct span_cache *cache = cache_in_use();
    struct span *displaced;
    void *block = take_large(BYTES, 16, LARGE_ZERO);
    size_t usable_bytes = hak_large_usable_bytes(block, "test");
    size_t held_bytes = hak_large_held_bytes();
    CHECK(span_of(block)->began_as_zeros);
    for (int i = 0; i < 3; i++) {
        CHECK(hak_large_give_recent(cache, block, &displaced));
        CHECK_EQ(displaced, NULL);
        CHECK(!hak_large_is_block(block));
        CHECK_EQ(hak_large_take_recent(cache, BYTES), block);
        CHECK(hak_large_is_block(block));
        CHECK(!span_of(block)->began_as_zeros);
        CHECK_EQ(hak_large_usable_bytes(block, "test"), usable_bytes);
    }
    CHECK_EQ(hak_large_take_recent(cache, BYTES), NULL);
    CHECK_EQ(hak_large_held_bytes(), held_bytes);
    CHECK_EQ(hak_load_relaxed(&cache->hits), 3);
}

TEST(blocks_that_fit_lie_in_the_span_and_others_leave_it)
{
    struct span_cache *cache = cache_in_use();
    struct span *displaced;
    unsigned char *block = take_large(BYTES, 16, LARGE_ANY);
    uint32_t granule = hak_granule_of(block);
    static const size_t fit_bytes[] = {5 * HAK_GRANULE_BYTES, 5 * HAK_GRANULE_BYTES - 1, BYTES - 1,
                                       4 * HAK_GRANULE_BYTES, 3 * HAK_GRANULE_BYTES + 1};
    static const size_t unfit_bytes[] = {HAK_SPAN_CACHE_BYTES_MOST, 5 * HAK_GRANULE_BYTES + 1,
                                         3 * HAK_GRANULE_BYTES, HAK_CLASS_BYTES_MAX + 1};
    for (size_t i = 0; i < sizeof fit_bytes / sizeof *fit_bytes; i++) {
        span_of(block)->lean_count = 5;
        CHECK(hak_large_give_recent(cache, block, &displaced));
        for (size_t j = 0; j < sizeof unfit_bytes / sizeof *unfit_bytes; j++)
            CHECK_EQ(hak_large_take_recent(cache, unfit_bytes[j]), NULL);
        block = hak_large_take_recent(cache, fit_bytes[i]);
        CHECK_EQ(hak_granule_of(block), granule);
        bool is_exact = fit_bytes[i] > 4 * HAK_GRANULE_BYTES;
        CHECK_EQ(span_of(block)->lean_count, is_exact ? 0 : 5);
        CHECK_EQ((uintptr_t)block % HAK_ORDINARY_ALIGNMENT, 0);
        CHECK(hak_large_usable_bytes(block, "test") >= fit_bytes[i]);
        CHECK_EQ((uintptr_t)(block + hak_large_usable_bytes(block, "test")),
                 (uintptr_t)hak_granule_address(granule + 5));
    }
}

/* The block is live, and no other is there. */
static void stays(struct span_cache *cache, void *block)
{
    struct span *displaced;
    uint32_t count = hak_recent_count(&cache->recent);
    CHECK(!hak_large_give_recent(cache, block, &displaced));
    CHECK_EQ(hak_recent_count(&cache->recent), count);
    CHECK(hak_large_is_block(block));
}

TEST(what_goes_another_way_is_left_alone)
{
    struct span_cache *cache = cache_in_use();
    struct span *displaced;
    struct list_link group;
    static struct span_cache unused;
    stays(cache, take_large(HAK_SPAN_CACHE_BYTES_MOST + 1, 16, LARGE_ANY));
    stays(&unused, take_large(BYTES, 16, LARGE_ANY));
    void *grouped = take_large(BYTES, 16, LARGE_ANY);
    hak_list_start(&group);
    hak_large_join(grouped, &group);
    stays(cache, grouped);
    void *first = take_large(BYTES, 16, LARGE_ANY), *second = take_large(BYTES, 16, LARGE_ANY);
    void *long_one = take_large(13 * HAK_GRANULE_BYTES, HAK_GRANULE_BYTES, LARGE_ANY);
    hak_store_relaxed(&cache->misses, HAK_SPAN_CACHE_USELESS);
    stays(cache, first);
    hak_store_relaxed(&cache->misses, 0);
    span_of(first)->piece_count = 1;
    stays(cache, first);
    span_of(first)->piece_count = 0;
    size_t mapped_bytes = hak_load_relaxed(&hak_region.mapped_bytes);
    hak_store_relaxed(&hak_region.mapped_bytes, hak_region_most_bytes());
    stays(cache, first); /* granules are scarce */
    hak_store_relaxed(&hak_region.mapped_bytes, mapped_bytes);
    CHECK(hak_large_give_recent(cache, first, &displaced));
    stays(cache, long_one); /* 13 granules are too many beside the first one's five */
    CHECK(hak_large_give_recent(cache, second, &displaced));
    CHECK_EQ(displaced, NULL);
    CHECK_EQ(hak_large_take_recent(cache, BYTES), first);
    CHECK_EQ(hak_large_take_recent(cache, BYTES), second);
}

TEST(a_small_program_keeps_no_span)
{
    CHECK(hak_process_start());
    struct span_cache *cache = cache_put_in_use();
    void *block = take_large(BYTES, 16, LARGE_ANY);
    CHECK(!hak_big_cache_is_needed());
    stays(cache, block);
    hak_big_cache_note_given_up(1, false);
    struct span *displaced;
    CHECK(hak_large_give_recent(cache, block, &displaced));
}

static void give_twice(struct span_cache *cache, void *block)
{
    struct span *displaced;
    CHECK(hak_large_give_recent(cache, block, &displaced));
    hak_span_cache_gather_recent(cache);
    CHECK(!hak_large_give_recent(cache, block, &displaced));
    hak_large_give(block);
}

TEST(misuse_is_left_to_the_other_way_which_reports_it)
{
    struct span_cache *cache = cache_in_use();
    struct span *displaced;
    char *block = take_large(BYTES, 16, LARGE_ANY);
    CHECK(!hak_large_give_recent(cache, block + 16, &displaced));
    CHECK(!hak_large_give_recent(cache, block + HAK_GRANULE_BYTES, &displaced));
    CHECK_ABORTS(give_twice(cache, block), "double free");
    CHECK(hak_large_is_block(block));
}

TEST(the_longest_block_of_a_cache_is_served_too)
{
    struct span_cache *cache = cache_in_use();
    struct span *displaced;
    void *block = take_large(HAK_SPAN_CACHE_BYTES_MOST, HAK_GRANULE_BYTES, LARGE_ANY);
    CHECK(hak_large_give_recent(cache, block, &displaced));
    CHECK_EQ(hak_large_take_recent(cache, HAK_SPAN_CACHE_BYTES_MOST), block);
}

/* Whoever looks in two places for one block must not count two misses. */
TEST(a_request_that_no_recent_span_fits_is_one_miss)
{
    stay_here();
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    hak_store_relaxed(&hak_policy.span_cache_bytes, 0); /* no other waits there */
    hak_free(hak_malloc(BYTES));
    struct heap *heap = hak_heap_own();
    CHECK(heap != NULL);
    hak_span_cache_put(&heap->spans, hak_large_end(hak_malloc(BYTES))); /* it is in use */
    CHECK(hak_malloc(BYTES) != NULL);
    void *block = hak_malloc(BYTES);
    hak_free(block);
    CHECK_EQ(hak_recent_count(&heap->spans.recent), 1);
    CHECK_EQ(hak_load_relaxed(&heap->spans.count), 0);
    uint32_t misses = hak_load_relaxed(&heap->spans.misses);
    CHECK(hak_malloc(2 * BYTES) != NULL);
    CHECK_EQ(hak_load_relaxed(&heap->spans.misses), misses + 2);
}

TEST(a_buffer_that_comes_and_goes_is_counted_and_ticks)
{
    stay_here();
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    hak_free(hak_malloc(BYTES));
    void *block = hak_malloc(BYTES);
    hak_free(block);
    block = hak_malloc(BYTES);
    struct heap *heap = hak_heap_own();
    CHECK(heap != NULL);
    size_t hits = hak_load_relaxed(&heap->spans.hits);
    struct cache *own = hak_own_cache();
    CHECK(own != NULL);
    uint64_t taken = hak_load_relaxed(&own->stats.counters[HAK_STAT_spans_taken]);
    uint64_t given = hak_load_relaxed(&own->stats.counters[HAK_STAT_spans_given]);
    uint32_t slow_count = hak_load_relaxed(&own->slow_count);
    for (int i = 0; i < 100; i++) {
        hak_free(block);
        CHECK_EQ(hak_malloc(BYTES), block);
    }
    CHECK_EQ(hak_load_relaxed(&own->stats.counters[HAK_STAT_spans_taken]) - taken, 100);
    CHECK_EQ(hak_load_relaxed(&own->stats.counters[HAK_STAT_spans_given]) - given, 100);
    CHECK_EQ(hak_load_relaxed(&heap->spans.hits) - hits, 100);
    uint32_t slow = hak_load_relaxed(&own->slow_count) - slow_count;
    CHECK(slow >= 100 && slow < 150); /* the general way counts both calls */
}
