/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/limit_test.c - the limits of what hakmem holds: free memory goes first, then
 * requests are refused, and frees make room again. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "heap/cache_list.h"
#include "heap/heaps.h"
#include "heap/limit.h"
#include "os/os_fault.h"
#include "process/reclaim.h"
#include "process/start.h"
#include "public.h"
#include "region/meta.h"
#include "slab/superslab_pool.h"
#include "span/large.h"
#include "span/span_heap.h"
#include "stay.h"

#include <errno.h>
#include <sched.h>

#define BLOCKS_MOST 100000

static void *blocks[BLOCKS_MOST];

static void limit_to(size_t bytes)
{
    hak_store_relaxed(&hak_policy.limit_bytes, bytes);
}

/* Allocates until refused; returns the number of blocks. */
static int take_all(size_t bytes)
{
    int count = 0;
    while (count < BLOCKS_MOST && (blocks[count] = hak_malloc(bytes)) != NULL) {
        memset(blocks[count], 1, bytes);
        count++;
    }
    CHECK(count < BLOCKS_MOST);
    CHECK_EQ(errno, ENOMEM);
    return count;
}

static void give_all(int count)
{
    for (int i = 0; i < count; i++)
        hak_free(blocks[i]);
}

/* What is held follows from what is live, warm and on record. */
static void check_held(void)
{
    struct hakmem_stats stats = stats_now();
    uint64_t clean =
        stats.span_free_clean_bytes + stats.slab_free_clean_bytes + stats.unusable_bytes;
    CHECK_EQ(hak_held_bytes(),
             stats.window_committed_bytes - clean + stats.metadata_bytes + stats.table_bytes);
}

TEST(what_is_held_is_everything_but_what_is_clean)
{
    void *small = hak_malloc(100), *large = hak_malloc(5 * HAK_MIB);
    check_held();
    size_t held = hak_held_bytes() - hak_meta_bytes();
    CHECK(held >= 5 * HAK_MIB);
    hak_free(large);
    check_held();
    CHECK(hak_held_bytes() >= 5 * HAK_MIB); /* warm */
    hak_reclaim_purge_all();
    check_held();
    CHECK(hak_held_bytes() - hak_meta_bytes() <= held - 5 * HAK_MIB);
    hak_free(small);
}

TEST(the_limit_admits_what_reaches_it_and_not_a_byte_more)
{
    CHECK(hak_malloc(HAK_MIB) != NULL);
    hak_free(hak_malloc(5 * HAK_MIB)); /* what is warm would go first */
    CHECK(hak_limit_warm_bytes() != 0);
    limit_to(64 * HAK_MIB);
    size_t room = 64 * HAK_MIB - (hak_held_bytes() - hak_limit_warm_bytes());
    CHECK(hak_limit_admits_slow(room));
    CHECK(!hak_limit_admits_slow(room + 1));
}

TEST(beyond_the_limit_large_blocks_are_refused_and_frees_make_room)
{
    CHECK(hak_process_start());
    limit_to(64 * HAK_MIB);
    for (int round = 0; round < 3; round++) {
        int count = take_all(HAK_MIB);
        CHECK(count >= 48 && count <= 64);
        CHECK(hak_held_bytes() <= 64 * HAK_MIB);
        give_all(count);
    }
    CHECK_EQ(hak_large_live_bytes(), 0);
}

TEST(beyond_the_limit_small_blocks_are_refused_and_frees_make_room)
{
    stay_here(); /* the cache of another processor is made beyond the limit, too */
    CHECK(hak_process_start());
    limit_to(16 * HAK_MIB);
    int counts[3];
    for (int round = 0; round < 3; round++) {
        counts[round] = take_all(1000);
        CHECK(counts[round] > (HAK_TINY ? 1000 : 12000)); /* a tiny slab has 8 */
        CHECK(hak_held_bytes() <= 16 * HAK_MIB);
        give_all(counts[round]);
    }
    CHECK(counts[2] >= counts[0] / 100 * 99);
}

TEST(what_is_free_serves_other_sizes_before_a_request_is_refused)
{
    CHECK(hak_process_start());
    limit_to(32 * HAK_MIB);
    give_all(take_all(1000));
    int count = take_all(200000);
    CHECK(count >= 100); /* of 256 KiB each */
    give_all(count);
}

TEST(a_request_above_the_limit_is_refused_and_leaves_no_trace)
{
    void *small = hak_malloc(10);
    hak_reclaim_purge_all();
    size_t held = hak_held_bytes();
    limit_to(64 * HAK_MIB);
    CHECK(hak_malloc(HAK_GIB) == NULL);
    CHECK(hak_calloc(HAK_GIB, 2) == NULL);
    CHECK(hak_aligned_alloc(4096, HAK_GIB) == NULL);
    CHECK_EQ(hak_held_bytes(), held);
    hak_free(small);
}

TEST(a_limit_below_what_is_live_refuses_growth_until_enough_is_freed)
{
    int count = 0;
    for (; count < 40; count++)
        CHECK((blocks[count] = hak_malloc(HAK_MIB)) != NULL);
    CHECK_EQ(hakmem_option_set("limit", "20M"), 0);
    CHECK(hak_malloc(HAK_MIB) == NULL);
    CHECK_EQ(errno, ENOMEM);
    give_all(10);
    CHECK(hak_malloc(HAK_MIB) == NULL); /* 30 are live still */
    for (int i = 10; i < 30; i++)
        hak_free(blocks[i]);
    void *block = hak_malloc(HAK_MIB);
    CHECK(block != NULL);
    hak_free(block);
    CHECK_EQ(hakmem_option_set("limit", "0"), 0);
    for (int i = 0; i < 30; i++)
        CHECK((blocks[i] = hak_malloc(HAK_MIB)) != NULL);
    give_all(count);
}

TEST(above_a_lowered_limit_a_large_block_shrinks_where_it_is)
{
    char *block = hak_malloc(40 * HAK_MIB);
    CHECK(block != NULL);
    limit_to(8 * HAK_MIB);
    size_t held = hak_held_bytes();
    CHECK(hak_realloc(block, 20 * HAK_MIB) == block);
    CHECK(hak_malloc_usable_size(block) < 21 * HAK_MIB);
    CHECK(hak_held_bytes() + 19 * HAK_MIB <= held);
    hak_free(block);
}

TEST(realloc_beyond_the_limit_is_refused_and_the_block_stays)
{
    unsigned char *block = hak_malloc(HAK_MIB);
    memset(block, 7, HAK_MIB);
    limit_to(32 * HAK_MIB);
    CHECK(hak_realloc(block, 64 * HAK_MIB) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK_EQ(block[0] + block[HAK_MIB - 1], 14);
    block = hak_realloc(block, 16 * HAK_MIB);
    CHECK(block != NULL);
    CHECK_EQ(block[HAK_MIB - 1], 7);
    hak_free(block);
}

TEST(a_private_heap_obeys_the_limit)
{
    hakmem_heap *heap = hakmem_heap_new();
    limit_to(16 * HAK_MIB);
    int count = 0;
    while (hakmem_heap_malloc(heap, 100000) != NULL)
        CHECK(++count < 200);
    CHECK(hakmem_heap_malloc(heap, 10 * HAK_MIB) == NULL);
    CHECK(count > 50);
    hakmem_heap_destroy(heap);
    void *block = hak_malloc(8 * HAK_MIB);
    CHECK(block != NULL);
    hak_free(block);
}

/* A slab of each class is left, without a block. */
TEST(a_private_heap_gets_what_heaps_and_caches_keep_before_it_is_refused)
{
    hakmem_heap *heap = hakmem_heap_new();
    hakmem_heap_free(heap, hakmem_heap_malloc(heap, 1000));
    size_t before = hak_held_bytes();
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++)
        CHECK((blocks[i] = hak_malloc(hak_size_classes[i].block_bytes)) != NULL);
    give_all(HAK_CLASS_COUNT);
    size_t freed_bytes = hak_held_bytes() - before;
    limit_to(hak_held_bytes());
    while (hakmem_heap_malloc(heap, 1000) != NULL)
        ;
    CHECK_EQ(errno, ENOMEM);
    struct hakmem_heap_stats stats;
    CHECK_EQ(hakmem_heap_stats_get(heap, &stats, sizeof stats), 0);
    CHECK(stats.held_bytes > freed_bytes / 10 * 8);
    hakmem_heap_destroy(heap);
}

TEST(above_the_soft_limit_free_memory_goes_before_more_is_taken)
{
    void *live = hak_malloc(10 * HAK_MIB), *freed = hak_malloc(10 * HAK_MIB);
    memset(live, 1, 10 * HAK_MIB);
    memset(freed, 1, 10 * HAK_MIB);
    hak_free(freed);
    CHECK(hak_span_warm_bytes() >= 10 * HAK_MIB);
    CHECK_EQ(hakmem_option_set("soft_limit", "25M"), 0);
    void *more = hak_malloc(12 * HAK_MIB); /* it does not fit into what is free */
    CHECK(more != NULL);
    CHECK(hak_held_bytes() <= 25 * HAK_MIB);
    hak_free(more);
    hak_free(live);
}

TEST(the_soft_limit_refuses_nothing)
{
    CHECK(hak_process_start());
    CHECK_EQ(hakmem_option_set("soft_limit", "1M"), 0);
    for (int i = 0; i < 40; i++)
        CHECK((blocks[i] = hak_malloc(HAK_MIB)) != NULL);
    CHECK(hak_limit_is_passed());
    give_all(40);
}

TEST(while_the_soft_limit_is_passed_the_tick_keeps_nothing_free)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.soft_limit_bytes, HAK_MIB);
    hak_store_relaxed(&hak_policy.decay_ms, 600000);
    void *live = hak_malloc(8 * HAK_MIB), *freed = hak_malloc(2 * HAK_MIB);
    hak_free(freed);
    CHECK(hak_span_warm_bytes() > 0);
    usleep(300000);
    hak_reclaim_tick();
    CHECK_EQ(hak_span_warm_bytes(), 0);
    hak_free(live);
}

static _Atomic uint32_t purges_seen, purges_under_growth, purges_inside;

/* Of the calling thread: the background one may purge while the test's own grows. */
static void watch_purges(void)
{
    if (!hak_lock_is_own(&hak_region.purge_lock))
        return;
    purges_seen++;
    purges_under_growth += hak_lock_is_own(&hak_region.growth_lock);
    purges_inside += hak_heap_is_held();
}

TEST(above_the_soft_limit_no_memory_goes_back_while_others_wait_for_growth)
{
    if (HAK_CHECK_LEVEL < 2)
        SKIP("nobody watches its calls");
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.decay_ms, 600000);
    hak_store_relaxed(&hak_policy.soft_limit_bytes, HAK_MIB);
    void *live = hak_malloc(8 * HAK_MIB);
    hak_store_relaxed(&hak_os_fault.watch, watch_purges);
    for (int i = 0; i < 10000; i++) {
        bool is_zero;
        hak_span_give(hak_span_take(3, 1, &is_zero)); /* what goes back */
        CHECK((blocks[i] = hak_malloc(1000)) != NULL);
    }
    hak_store_relaxed(&hak_os_fault.watch, NULL);
    CHECK(purges_seen > 0);
    CHECK_EQ(purges_under_growth, 0);
    CHECK_EQ(purges_inside, 0);
    give_all(10000);
    hak_free(live);
}

#define RELIEF_MS 250

/* A tick between two times at which all caches are emptied; false: it came too late. */
static bool ticks_between(uint64_t begin_ms)
{
    usleep(21000);
    hak_reclaim_tick();
    return hak_os_clock_ms() - begin_ms < RELIEF_MS;
}

TEST(while_the_soft_limit_is_passed_a_busy_processor_keeps_its_cache_for_a_while)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK(hak_process_start());
    void *live = hak_malloc(8 * HAK_MIB);
    if (hak_caches_reason() != RSEQ_PROCESSOR || sched_setaffinity(0, sizeof one, &one) != 0)
        SKIP("caches belong to threads");
    hak_store_relaxed(&hak_policy.soft_limit_bytes, HAK_MIB);
    for (int looks = 0, i = 0; looks < 2; i++) {
        CHECK(i < 50);
        usleep(RELIEF_MS * 1000);
        uint64_t begin_ms = hak_os_clock_ms();
        hak_reclaim_tick();
        hak_free(hak_malloc(64));
        hak_free(hak_malloc(64));
        const struct bins *bins = hak_word_peek(&hak_own_cache()->bins);
        if (ticks_between(begin_ms)) {
            CHECK(hak_word_peek(&hak_own_cache()->bins) == bins);
            looks++;
        }
    }
    hak_free(live);
}

static void check_nothing_is_emptied_by(size_t bytes)
{
    void *live = hak_malloc(8 * HAK_MIB), *freed = hak_malloc(2 * HAK_MIB);
    hak_free(freed);
    size_t warm_bytes = hak_span_warm_bytes();
    CHECK(warm_bytes > 0);
    CHECK(hak_malloc(bytes) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(hak_aligned_alloc(64, bytes) == NULL);
    CHECK_EQ(hak_span_warm_bytes(), warm_bytes);
    hak_free(live);
}

TEST(a_request_beyond_the_window_empties_nothing)
{
    CHECK(hak_process_start());
    check_nothing_is_emptied_by(hak_region.window_bytes + 64);
    limit_to(HAK_GIB);
    check_nothing_is_emptied_by(hak_region.window_bytes + 64);
}

TEST(a_request_beyond_the_limit_empties_nothing)
{
    CHECK(hak_process_start());
    limit_to(64 * HAK_MIB);
    check_nothing_is_emptied_by(64 * HAK_MIB + 64);
}

/* The thread that made the slabs goes on working in them, so that nobody else sweeps them. */
TEST(while_the_soft_limit_is_passed_a_thread_sweeps_its_slabs_however_long_decay_is)
{
    enum { SPARSE = 40000, KEPT_EVERY = 40 };
    if (HAK_TINY || hak_os_page_bytes() > 4096)
        SKIP("no page is without a block");
    CHECK(hak_malloc(1) != NULL);
    struct heap *heap = hak_heap_near();
    hak_store_relaxed(&hak_policy.decay_ms, 600000);
    for (int i = 0; i < SPARSE; i++)
        blocks[i] = hak_malloc(500);
    for (int i = 0; i < SPARSE; i++)
        if (i % KEPT_EVERY != 0)
            hak_free(blocks[i]);
    hak_store_relaxed(&hak_policy.soft_limit_bytes, HAK_MIB);
    const _Atomic uint64_t *swept = &heap->stats.counters[HAK_STAT_swept_bytes];
    CHECK_EQ(hak_load_relaxed(swept), 0);
    for (int i = 0; i < 1000 && hak_load_relaxed(swept) == 0; i++) {
        usleep(10000);
        hak_reclaim_cache(hak_thread_cache());
    }
    CHECK(hak_load_relaxed(swept) > 0);
}

TEST(memory_that_is_short_empties_the_bins_of_each_thread_once)
{
    for (int i = 0; i < 200; i++)
        blocks[i] = hak_malloc(64);
    give_all(200);
    struct cache *cache = hak_thread_cache();
    void *kept = hak_malloc(64);
    hak_free(kept);
    CHECK(stats_now().cached_bytes > 0);
    uint32_t before = cache->relief_count;
    hak_reclaim_relieve();
    hak_reclaim_cache(cache);
    CHECK_EQ(cache->relief_count, before + 1);
    CHECK_EQ(stats_now().cached_bytes, 0);
    hak_free(hak_malloc(64));
    hak_free(hak_malloc(64));
    hak_reclaim_cache(cache);
    CHECK_EQ(cache->relief_count, before + 1);
}
