/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/cache_list_test.c - caches of threads are taken, returned, awaited, and found
 * without their threads in a copy of the process. */
#include "heap/cache_list.h"

#include "check.h"
#include "heap/heaps.h"
#include "heap/refill.h"
#include "heap/rooms.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "region/meta.h"
#include "slabs.h"

#define CLASS 4u

static struct cache *take(void)
{
    CHECK(hak_process_start());
    struct cache *cache = hak_cache_take();
    CHECK(cache != NULL);
    CHECK_EQ(cache->place, CACHE_IN_USE);
    return cache;
}

/* A bin of the cache has slots, and a block that came from a heap. */
static void hold_a_block(struct cache *cache)
{
    bool is_zero;
    CHECK(hak_rooms_try_lock());
    CHECK(hak_room_resize(cache, CLASS, 3));
    hak_rooms_unlock();
    cache->capacity_bytes = 3 * hak_size_classes[CLASS].block_bytes;
    struct heap *heap = hak_heap_enter();
    CHECK(heap != NULL);
    void *block = take_block_zero(heap, CLASS, &is_zero);
    hak_heap_leave(heap);
    CHECK(block != NULL);
    CHECK_EQ(hak_cache_push_some(cache, CLASS, &block, 1), 1);
}

TEST(a_cache_that_was_returned_serves_the_next_thread)
{
    struct cache *cache = take(), *other = take();
    CHECK(cache != other);
    hak_cache_return(cache);
    CHECK_EQ(cache->place, CACHE_FREE);
    CHECK_EQ(take(), cache);
    CHECK(take() != other);
}

TEST(a_returned_cache_keeps_its_blocks_as_far_as_there_is_room)
{
    struct cache *cache = take();
    hold_a_block(cache);
    hak_store_relaxed(&hak_policy.free_cache_bytes, cache->capacity_bytes);
    hak_cache_return(cache);
    CHECK_EQ(hak_cache_count(cache, CLASS), 1);
    CHECK_EQ(take(), cache);
    hak_store_relaxed(&hak_policy.free_cache_bytes, cache->capacity_bytes - 1);
    hak_cache_return(cache);
    CHECK_EQ(hak_cache_count(cache, CLASS), 0);
}

TEST(a_new_cache_leaves_room_for_the_records_of_slabs)
{
    CHECK(hak_process_start());
    struct heap *first = hak_heap_enter(), *second = hak_heap_enter();
    hak_heap_leave(second);
    hak_heap_leave(first);
    CHECK_EQ(hak_heap_count(), 2);
    struct meta_pool pool = {0};
    for (size_t i = 0; i < 40; i++) {
        CHECK(hak_meta_take(64 + i * 1000) != NULL);
        take();
        size_t bytes = hak_meta_bytes();
        for (size_t left = 32 * HAK_KIB; left >= 320; left -= 320) /* the whole reserve */
            CHECK(hak_meta_pool_take_reserved(&pool, 320) != NULL);
        CHECK_EQ(hak_meta_bytes(), bytes);
    }
}

TEST(free_caches_are_emptied_by_age)
{
    struct cache *cache = take();
    hold_a_block(cache);
    hak_cache_return(cache);
    cache->free_ms = 1000;
    hak_caches_drain(999, NULL);
    CHECK_EQ(hak_cache_count(cache, CLASS), 1);
    hak_caches_drain(1000, NULL);
    CHECK_EQ(hak_cache_count(cache, CLASS), 0);
    /* Empty, it is not looked at again. */
    cache->free_ms = 1000;
    hak_caches_drain(UINT64_MAX, NULL);
    CHECK_EQ(cache->free_ms, 1000);
}

TEST(in_a_copy_the_caches_of_other_threads_are_free)
{
    struct cache *absent = take(), *own = take();
    hak_caches_settle(own);
    CHECK_EQ(take(), absent);
    CHECK(take() != own);
}

TEST(in_a_copy_a_cache_that_its_thread_was_changing_is_lost)
{
    struct cache *absent = take(), *own = take();
    hak_cache_set_state(absent, CACHE_BUSY);
    hak_caches_settle(own);
    CHECK(take() != absent);
    CHECK_EQ(absent->place, CACHE_LOST);
}

TEST(caches_that_nobody_changes_are_not_waited_for)
{
    struct cache *own = take(), *idle = take(), *returned = take();
    hak_cache_return(returned);
    hak_cache_set_state(returned, CACHE_BUSY);
    hak_fetch_add_acq_rel(&own->in_flight, 1);
    hak_lock_take(&hak_caches_lock_word);
    hak_caches_await(own, UINT32_MAX);
    hak_lock_give(&hak_caches_lock_word);
    CHECK_EQ(hak_load_relaxed(&own->in_flight), 1); /* of a slow path that goes on */
    CHECK_EQ(idle->place, CACHE_IN_USE);
}

TEST(blocks_that_a_jump_left_in_flight_are_waited_for_once)
{
    struct cache *own = take(), *other = take();
    hak_fetch_add_acq_rel(&other->in_flight, 1);
    hak_lock_take(&hak_caches_lock_word);
    hak_caches_await(own, 1);
    CHECK_EQ(hak_load_relaxed(&other->in_flight), 0);
    hak_caches_await(own, UINT32_MAX);
    hak_lock_give(&hak_caches_lock_word);
}

TEST(a_block_that_is_in_a_bin_twice_is_found)
{
    struct cache *cache = take();
    void *block = NULL;
    hold_a_block(cache);
    hak_cache_check(cache);
    CHECK_EQ(hak_cache_count(cache, CLASS), 1);
    CHECK_EQ(hak_cache_pop_some(cache, CLASS, &block, 1), 1);
    void *twice[2] = {block, block};
    CHECK_EQ(hak_cache_push_some(cache, CLASS, twice, 2), 2);
    CHECK_ABORTS(hak_cache_check(cache), "double free");
}
