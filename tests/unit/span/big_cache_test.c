/* SPDX-License-Identifier: MIT */
/* tests/unit/span/big_cache_test.c - what is kept follows from what came back. */
#include "check.h"
#include "conf/conf.h"
#include "faults.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "span/big_cache.h"
#include "span/span_cache.h"
#include "span/span_free.h"
#include "span/span_heap.h"
#include "span/span_purge.h"
#include "stats/counters.h"
#include "unit/span/take_large.h"

#include <string.h>

#define DECAY_MS 125u

static uint64_t now = 1000000; /* of no clock */

/* A span of `count` granules is kept for `kept_ms` and wanted again after `idle_ms` in all. */
static void come_back(uint32_t count, uint64_t idle_ms)
{
    uint64_t freed_ms = now;
    now += idle_ms;
    if (idle_ms <= hak_big_cache_keep_ms()) {
        hak_big_cache_served(&(struct big_serve){now, freed_ms, 0, count, count});
        return;
    }
    hak_big_cache_left(count, freed_ms, freed_ms + hak_big_cache_keep_ms(), LEAVES_AGED);
    hak_big_cache_served(&(struct big_serve){now, 0, 0, count, 0});
}

static uint64_t counter(const _Atomic uint64_t *counter)
{
    return hak_load_relaxed(counter);
}

TEST(memory_that_comes_back_a_little_late_is_kept_longer)
{
    for (int i = 0; i < 100; i++)
        come_back(100, 300);
    CHECK_EQ(hak_big_cache_keep_ms(), 4 * DECAY_MS);
    uint64_t missed = counter(&hak_stat_globals.spans_missed_bytes);
    for (int i = 0; i < 100; i++)
        come_back(100, 300);
    CHECK_EQ(counter(&hak_stat_globals.spans_missed_bytes), missed);
}

TEST(memory_that_comes_back_at_once_changes_nothing)
{
    for (int i = 0; i < 1000; i++)
        come_back(100, (uint64_t)i % 4);
    CHECK_EQ(hak_big_cache_keep_ms(), DECAY_MS);
}

TEST(what_decay_says_holds_where_it_is_never)
{
    hak_store_relaxed(&hak_policy.decay_ms, UINT64_MAX / 2);
    for (int i = 0; i < 100; i++)
        come_back(100, 300);
    CHECK_EQ(hak_big_cache_keep_ms(), UINT64_MAX / 2);
}

TEST(the_slack_is_doubled_while_evicted_memory_is_wanted_again)
{
    size_t peak = 1024 * HAK_MIB, live = 900 * HAK_MIB;
    size_t most = hak_big_cache_most_bytes(live, peak);
    size_t slack = most - (peak - live);
    CHECK(slack > 120 * HAK_MIB && slack < 124 * HAK_MIB);
    for (int i = 0; i < 1000; i++) {
        now += 10;
        hak_big_cache_left(200, now, now, LEAVES_EVICTED);
        hak_big_cache_served(&(struct big_serve){now, 0, 0, 200, 0});
    }
    CHECK_EQ(hak_big_cache_most_bytes(live, peak), most + slack);
    /* It stays doubled while the second half serves. */
    for (int i = 0; i < 1000; i++) {
        now += 10;
        hak_big_cache_served(&(struct big_serve){now, now - 10, most + slack, 200, 200});
    }
    CHECK_EQ(hak_big_cache_most_bytes(live, peak), most + slack);
    /* And no longer. */
    for (int i = 0; i < 1000; i++) {
        now += 10;
        hak_big_cache_served(&(struct big_serve){now, now - 10, most / 2, 200, 200});
    }
    CHECK_EQ(hak_big_cache_most_bytes(live, peak), most);
}

TEST(a_doubled_slack_that_serves_a_granule_at_a_time_has_not_earned_itself)
{
    size_t peak = 1024 * HAK_MIB, live = 900 * HAK_MIB;
    size_t most = hak_big_cache_most_bytes(live, peak);
    for (int i = 0; i < 1000; i++) {
        now += 10;
        hak_big_cache_left(200, now, now, LEAVES_EVICTED);
        hak_big_cache_served(&(struct big_serve){now, 0, 0, 200, 0});
    }
    CHECK(hak_big_cache_most_bytes(live, peak) > most);
    for (int i = 0; i < 1000; i++) {
        now += 10;
        hak_big_cache_served(
            &(struct big_serve){now, now - 10, most + HAK_GRANULE_BYTES, 200, 200});
    }
    CHECK_EQ(hak_big_cache_most_bytes(live, peak), most);
}

TEST(evictions_without_later_misses_do_not_double_the_slack)
{
    size_t most = hak_big_cache_most_bytes(900 * HAK_MIB, 1024 * HAK_MIB);
    for (int i = 0; i < 1000; i++) {
        now += 10;
        hak_big_cache_left(100, now, now, LEAVES_EVICTED);
        hak_big_cache_served(&(struct big_serve){now, 0, 0, 200, 0}); /* too long for those */
    }
    CHECK_EQ(hak_big_cache_most_bytes(900 * HAK_MIB, 1024 * HAK_MIB), most);
    CHECK_EQ(counter(&hak_stat_globals.spans_missed_bytes), 0);
}

TEST(no_more_is_kept_than_the_user_allows)
{
    setenv("HAKMEM_BIG_CACHE", "8M", 1);
    CHECK(hak_process_start());
    void *blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = take_large(4 * HAK_MIB, 16, LARGE_ANY);
    for (int i = 0; i < 8; i++) {
        hak_large_give(blocks[i]);
        void *next = take_large(HAK_MIB, 16, LARGE_ANY);
        CHECK(next != NULL);
        CHECK(hak_span_warm_bytes() <= 8 * HAK_MIB);
    }
    CHECK(counter(&hak_stat_globals.spans_evicted) > 0);
    CHECK(counter(&hak_stat_globals.spans_evicted_bytes) > 0);
    CHECK(hak_span_heap_is_sound());
}

TEST(hits_and_misses_are_counted)
{
    CHECK(hak_process_start());
    void *block = take_large(3 * HAK_MIB, 4096, LARGE_ANY);
    CHECK_EQ(counter(&hak_stat_globals.spans_fresh), 1);
    hak_large_give(block);
    CHECK(take_large(2 * HAK_MIB, 4096, LARGE_ANY) != NULL);
    CHECK_EQ(counter(&hak_stat_globals.spans_reused), 1);
    CHECK_EQ(counter(&hak_stat_globals.spans_reused_bytes), 2 * HAK_MIB);
    CHECK_EQ(counter(&hak_stat_globals.spans_fresh), 1);
}

/* The clock goes on: what is free was freed so much earlier, and goes if that is too long ago. */
static void pass(uint64_t ms)
{
    uint64_t now_ms = hak_os_clock_ms();
    hak_span_lock();
    struct span_set *set = &hak_span_free.sets[0];
    for (struct list_link *i = set->ages.next; i != &set->ages; i = i->next)
        hak_list_element(i, struct span, age_link)->freed_ms -= ms;
    if (hak_load_relaxed(&set->oldest_ms) != 0)
        hak_store_relaxed(&set->oldest_ms, hak_load_relaxed(&set->oldest_ms) - ms);
    hak_span_unlock();
    hak_span_purge(now_ms - hak_big_cache_keep_ms(), 0, UINT32_MAX);
}

/* Blocks of so many bytes are taken and freed again and again, 200 ms apart: after ten times
 * nothing leaves that is needed. */
static void is_learned_for(int block_count, size_t bytes)
{
    void *blocks[16];
    uint64_t missed = 0;
    CHECK(hak_process_start());
    for (int cycle = 0; cycle < 40; cycle++) {
        if (cycle == 10)
            missed = counter(&hak_stat_globals.spans_missed_bytes);
        for (int i = 0; i < block_count; i++)
            blocks[i] = take_large(bytes, 16, LARGE_ANY);
        for (int i = 0; i < block_count; i++)
            hak_large_give(blocks[i]);
        pass(200);
    }
    CHECK(missed > 0);
    CHECK_EQ(counter(&hak_stat_globals.spans_missed_bytes), missed);
    CHECK(hak_big_cache_keep_ms() > 200);
}

TEST(blocks_of_many_megabytes_that_come_back_late_are_learned_from)
{
    is_learned_for(4, 3 * HAK_MIB);
}

TEST(so_are_blocks_of_less_than_a_megabyte)
{
    is_learned_for(12, 300000);
}

TEST(so_are_the_smallest_large_blocks)
{
    is_learned_for(16, HAK_GRANULE_BYTES / 2);
}

static struct span_cache cache;

/* A block of so many granules is taken, written to and freed. */
static void use_once(size_t granules)
{
    size_t bytes = granules * HAK_GRANULE_BYTES;
    CHECK(hak_process_start());
    struct large_request request = {bytes, 4096, LARGE_ANY, LARGE_PACKED, 0};
    void *block = hak_large_take_in(hak_large_find(&cache, &request), &request);
    CHECK(block != NULL);
    memset(block, 1, bytes);
    struct span *span = hak_large_end(block);
    if (hak_large_may_keep(span))
        hak_large_keep(&cache, span, SIZE_MAX);
    else
        hak_large_give_up(span);
}

TEST(what_the_first_large_blocks_leave_goes_at_once)
{
    use_once(5);
    CHECK_EQ(hak_span_warm_bytes() + hak_large_held_bytes(), 0);
    CHECK_EQ(counter(&hak_stat_globals.spans_given_up), 1);
    use_once(6);
    CHECK_EQ(hak_span_warm_bytes() + hak_large_held_bytes(), 0);
    CHECK_EQ(counter(&hak_stat_globals.spans_given_up), 2);
    CHECK(hak_span_heap_is_sound());
}

TEST(and_is_kept_from_when_it_was_wanted_again_on)
{
    use_once(5);
    use_once(4);
    CHECK_EQ(hak_load_relaxed(&cache.count), 1);
    use_once(20);
    CHECK_EQ(hak_span_warm_bytes(), 20 * HAK_GRANULE_BYTES);
    CHECK_EQ(counter(&hak_stat_globals.spans_given_up), 1);
}

TEST(a_block_as_long_as_one_that_went_is_wanted_again)
{
    use_once(5);
    use_once(5);
    CHECK_EQ(hak_load_relaxed(&cache.count), 1);
    CHECK_EQ(counter(&hak_stat_globals.spans_given_up), 1);
}

TEST(or_when_more_large_blocks_were_live)
{
    CHECK(hak_process_start());
    for (int i = 0; i < 16; i++)
        CHECK(take_large(300000, 16, LARGE_ANY) != NULL);
    use_once(5);
    CHECK_EQ(hak_load_relaxed(&cache.count), 1);
}

TEST(or_where_free_memory_stays_anyway)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.decay_ms, HAK_CONF_NEVER_MS);
    use_once(5);
    hak_store_relaxed(&hak_policy.decay_ms, DECAY_MS);
    hak_store_relaxed(&hak_policy.free_policy, POLICY_FREE_KEEP);
    use_once(6);
    hak_store_relaxed(&hak_policy.free_policy, POLICY_FREE_ADAPTIVE);
    hak_store_relaxed(&hak_policy.prewarm_bytes, 1);
    use_once(8);
    CHECK_EQ(hak_load_relaxed(&cache.count), 3);
}

TEST(memory_that_the_kernel_does_not_take_stays_warm)
{
    CHECK(hak_process_start());
    fail_every(1, FAULT_ADVISE);
    use_once(5);
    hak_os_fault_every(0);
    CHECK_EQ(hak_span_warm_bytes(), 5 * HAK_GRANULE_BYTES);
    CHECK_EQ(counter(&hak_stat_globals.spans_given_up), 0);
    CHECK(hak_big_cache_is_needed()); /* and nobody tries again */
}

TEST(at_price_speed_the_first_ones_are_kept_too)
{
    setenv("HAKMEM_PRICE", "speed", 1);
    use_once(5);
    CHECK_EQ(hak_load_relaxed(&cache.count), 1);
}
