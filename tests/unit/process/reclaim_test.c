/* SPDX-License-Identifier: MIT */
/* tests/unit/process/reclaim_test.c - free memory goes back to the kernel, in time and on
 * demand. */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "heap/flush.h"
#include "heap/heap.h"
#include "heap/heaps.h"
#include "heap/refill.h"
#include "process/reclaim.h"
#include "process/start.h"
#include "process/tick.h"
#include "threads.h"

#include "policy/policy_table.h"
#include "slab/superslab_pool.h"
#include "span/span_heap.h"

#define BYTES (2 * HAK_MIB)

/* What a block leaves is kept, though it was the first one. */
static void *used(size_t bytes)
{
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    void *block = hak_malloc(bytes);
    CHECK(block != NULL);
    memset(block, 1, bytes);
    return block;
}

TEST(a_purge_of_everything_returns_all_free_memory_and_its_amount)
{
    void *block = used(BYTES), *kept = used(BYTES);
    hak_free(block);
    size_t warm = hak_span_warm_bytes();
    CHECK(warm >= BYTES);
    CHECK_EQ(hak_reclaim_purge_all(), warm);
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK_EQ(*(unsigned char *)kept, 1);
    CHECK_EQ(hak_reclaim_purge_all(), 0);
}

TEST(a_purge_of_everything_reaches_empty_slabs)
{
    static void *blocks[64];
    for (int i = 0; i < 64; i++)
        blocks[i] = used(60000);
    for (int i = 0; i < 64; i++)
        hak_free(blocks[i]);
    hak_thread_flush();
    CHECK(hak_load_relaxed(&hak_spare_granules) != 0);
    CHECK(hak_reclaim_purge_all() > 0);
    CHECK_EQ(hak_pool_warm_count(), 0);
    CHECK_EQ(hak_span_warm_bytes(), 0);
}

static void *fill_bins_and_end(void *argument)
{
    void *block = hak_malloc(64);
    hak_free(hak_malloc(64));
    hak_free(block);
    return argument;
}

TEST(a_purge_of_everything_reaches_the_bins_of_threads_that_ended)
{
    in_thread(fill_bins_and_end, NULL);
    CHECK(hak_slab_record_count() > 0);
    hak_reclaim_trim(0);
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(a_tick_purges_memory_that_was_free_longer_than_decay)
{
    void *block = used(BYTES);
    hak_store_relaxed(&hak_policy.decay_ms, 60000);
    hak_free(block);
    usleep(30000);
    hak_reclaim_tick();
    CHECK(hak_span_warm_bytes() >= BYTES);
    hak_store_relaxed(&hak_policy.decay_ms, 5);
    usleep(30000);
    hak_reclaim_tick();
    CHECK_EQ(hak_span_warm_bytes(), 0);
}

TEST(a_few_slow_operations_are_enough_where_they_are_rare)
{
    void *wall = used(BYTES), *block = used(BYTES), *wall_behind = used(BYTES);
    hak_store_relaxed(&hak_policy.decay_ms, 5);
    hak_store_relaxed(&hak_policy.retain_bytes, 0);
    hak_free(block);
    CHECK(hak_span_warm_bytes() >= BYTES);
    usleep(100000);
    for (int i = 0; i < HAK_SLOW_OPERATIONS_PER_LOOK; i++)
        hak_free(hak_malloc((size_t)1000 << i)); /* the first of its class takes the slow path */
    CHECK_EQ(hak_span_warm_bytes(), 0);
    hak_free(wall);
    hak_free(wall_behind);
}

TEST(a_tick_keeps_a_share_of_live_memory)
{
    void *live = used(16 * HAK_MIB), *block = used(BYTES), *wall = used(BYTES);
    hak_store_relaxed(&hak_policy.decay_ms, 0);
    hak_free(block);
    usleep(30000);
    hak_reclaim_tick();
    CHECK(hak_span_warm_bytes() >= BYTES);
    hak_store_relaxed(&hak_policy.retain_bytes, 0);
    usleep(30000);
    hak_reclaim_tick();
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK(live != wall);
}

TEST(a_tick_does_nothing_when_decay_is_never)
{
    hak_store_relaxed(&hak_policy.retain_bytes, 0);
    void *block = used(BYTES);
    hak_store_relaxed(&hak_policy.decay_ms, UINT64_MAX / 2);
    hak_free(block);
    usleep(30000);
    hak_reclaim_tick();
    CHECK(hak_span_warm_bytes() >= BYTES);
}

/* A heap that no thread comes to any more. */
TEST(a_tick_maintains_heaps_that_no_thread_enters)
{
    void *block = used(64);
    hak_thread_flush();
    struct heap *heap = hak_heap_at(0);
    CHECK(hak_heap_try_enter(heap));
    hak_flush_one(hak_slab_at(block), block); /* it is busy: the block waits at its door */
    hak_heap_leave(heap);
    CHECK(hak_load_relaxed(&heap->owner.pending) != NULL);
    hak_store_relaxed(&hak_policy.decay_ms, 5);
    usleep(100000);
    CHECK(hak_reclaim_tick());
    CHECK_EQ(hak_load_relaxed(&heap->owner.pending), NULL);
}
