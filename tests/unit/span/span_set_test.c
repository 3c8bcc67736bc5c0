/* SPDX-License-Identifier: MIT */
/* tests/unit/span/span_set_test.c - where threads meet, each heap has free spans of its own. */
#include "check.h"
#include "faults.h"
#include "os/os.h"
#include "process/start.h"
#include "region/tag_map.h"
#include "span/span_free.h"
#include "span/span_heap.h"
#include "span/span_purge.h"
#include "span/span_take.h"
#include "stats/counters.h"
#include "threads.h"
#include "unit/span/take_large.h"

static size_t granules_bytes(size_t count)
{
    return count << HAK_GRANULE_SHIFT;
}

static size_t set_bytes(uint32_t set)
{
    return hak_load_relaxed(&hak_span_free.sets[set].warm_bytes);
}

static void let_threads_wait(void)
{
    hak_store_relaxed(&hak_lock_waits[HAK_LOCK_SPAN].count, HAK_SPAN_SET_WAITS);
}

static struct span *take(uint32_t count, uint32_t set)
{
    bool is_zero;
    CHECK(hak_process_start());
    let_threads_wait();
    struct span *span = hak_span_take_wished((struct span_fit){count, 1, 0}, count, set, &is_zero);
    CHECK(span != NULL);
    CHECK_EQ(span->count, count);
    CHECK(hak_span_heap_is_sound());
    return span;
}

/* Where a lock is held that a look at everything would wait for. */
static struct span *take_unheard(uint32_t count, uint32_t set)
{
    bool is_zero;
    struct span *span = hak_span_take_wished((struct span_fit){count, 1, 0}, count, set, &is_zero);
    CHECK(span != NULL);
    return span;
}

static void give(struct span *span)
{
    hak_span_give(span);
    CHECK(hak_span_heap_is_sound());
}

/* Spans of so many granules each, one behind the other, with used ones before and behind. */
static void take_row(struct span **row, uint32_t spans, uint32_t count, const uint32_t *sets)
{
    take(1, 0);
    for (uint32_t i = 0; i < spans; i++)
        row[i] = take(count, sets[i]);
    take(1, 0);
    for (uint32_t i = 1; i < spans; i++)
        CHECK_EQ(row[i]->first, row[i - 1]->first + count);
}

/* The same, all of them free. Where the first one is. */
static uint32_t leave_row(uint32_t spans, uint32_t count, const uint32_t *sets)
{
    struct span *row[4];
    CHECK(spans <= 4);
    take_row(row, spans, count, sets);
    uint32_t place = row[0]->first;
    for (uint32_t i = 0; i < spans; i++)
        give(row[i]);
    return place;
}

TEST(heaps_have_sets_once_threads_have_waited_for_set_0_often)
{
    hak_store_relaxed(&hak_lock_waits[HAK_LOCK_SPAN].count, HAK_SPAN_SET_WAITS - 1);
    CHECK_EQ(hak_span_set_of(1), 0);
    let_threads_wait();
    CHECK_EQ(hak_span_set_of(0), 0);
    for (uint32_t id = 1; id < 3 * HAK_SPAN_SETS; id++) {
        CHECK(hak_span_set_of(id) > 0 && hak_span_set_of(id) < HAK_SPAN_SETS);
        CHECK(hak_span_set_of(id) != hak_span_set_of(id + 1));
    }
}

TEST(a_span_goes_back_to_the_set_that_it_was_taken_for)
{
    struct span *own = take(3, 1), *other = take(3, 2), *common = take(3, 0);
    give(own);
    CHECK_EQ(set_bytes(1), granules_bytes(3));
    CHECK_EQ(set_bytes(0) + set_bytes(2), 0);
    give(other);
    give(common);
    for (uint32_t set = 0; set < 3; set++)
        CHECK_EQ(set_bytes(set), granules_bytes(3));
    CHECK_EQ(hak_span_set_count(), 3);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(9));
}

TEST(a_set_serves_its_heap_first)
{
    uint32_t place = leave_row(3, 4, (const uint32_t[]){0, 2, 1});
    CHECK_EQ(take(4, 1)->first, place + 8);
    CHECK_EQ(take(4, 2)->first, place + 4);
    CHECK_EQ(take(4, 0)->first, place);
}

TEST(then_set_0_and_then_other_sets_rather_than_memory_that_nobody_used)
{
    uint32_t place = leave_row(3, 4, (const uint32_t[]){2, 0, 3});
    CHECK_EQ(take(4, 1)->first, place + 4);
    struct span *taken = take(4, 1);
    CHECK_EQ(taken->first, place);
    CHECK_EQ(take(4, 1)->first, place + 8);
    size_t used_bytes = hak_span_known_bytes() - hak_span_clean_bytes();
    take(4, 1);
    CHECK_EQ(hak_span_known_bytes() - hak_span_clean_bytes(), used_bytes + granules_bytes(4));
    give(taken); /* it stays with the heap that has it */
    CHECK_EQ(set_bytes(1), granules_bytes(4));
    CHECK_EQ(set_bytes(2), 0);
}

TEST(neighbours_join_in_one_set_and_not_across_sets)
{
    uint32_t place = leave_row(4, 2, (const uint32_t[]){1, 1, 2, 0});
    CHECK_EQ(hak_span_free_at(place, 1)->count, 4);
    CHECK_EQ(hak_span_free_at(place + 4, 2)->count, 2);
    CHECK_EQ(hak_span_free_at(place + 6, 0)->count, 2);
    CHECK_EQ(hak_span_free_at(place, 2), NULL);
    CHECK_EQ(hak_span_free_at(place + 4, 1), NULL);
    CHECK_EQ(hak_span_free_anywhere_at(place + 5)->first, place + 4);
}

TEST(a_request_that_is_too_long_for_a_set_makes_all_spans_join)
{
    uint32_t place = leave_row(3, 6, (const uint32_t[]){1, 2, 1});
    CHECK_EQ(take(18, 1)->first, place);
    CHECK_EQ(hak_span_warm_bytes(), 0);
}

TEST(long_spans_are_of_no_set)
{
    struct span *longest = take(17, 1), *longer = take(18, 1);
    give(longest);
    give(longer);
    CHECK_EQ(set_bytes(1), granules_bytes(17));
    CHECK_EQ(set_bytes(0), granules_bytes(18));
}

TEST(a_set_that_has_too_little_is_used_with_the_clean_memory_next_to_it)
{
    struct span *row[2];
    take_row(row, 2, 3, (const uint32_t[]){1, 0});
    uint32_t place = row[0]->first;
    CHECK(hak_span_give_purged(row[1]));
    give(row[0]);
    CHECK_EQ(take(6, 1)->first, place);
    CHECK_EQ(hak_span_warm_bytes(), 0);
}

TEST(a_block_grows_into_what_is_free_in_its_set_or_in_set_0)
{
    struct span *row[4];
    take_row(row, 4, 2, (const uint32_t[]){1, 1, 0, 2});
    for (uint32_t i = 1; i < 4; i++)
        give(row[i]);
    CHECK(hak_span_extend(row[0], 4));
    CHECK(hak_span_extend(row[0], 5));
    CHECK_EQ(row[0]->count, 5);
    CHECK(!hak_span_extend(row[0], 7)); /* the rest is another set's */
    CHECK(hak_span_heap_is_sound());
    hak_span_cut(row[0], 1);
    CHECK_EQ(set_bytes(1), granules_bytes(4));
    CHECK(hak_span_heap_is_sound());
}

TEST(the_oldest_span_of_all_sets_goes_first)
{
    struct span *row[3];
    uint64_t last_ms = 0;
    take_row(row, 3, 2, (const uint32_t[]){1, 2, 0});
    for (uint32_t i = 0; i < 3; i++) {
        while (hak_os_clock_ms() == last_ms)
            continue;
        last_ms = hak_os_clock_ms();
        give(row[i]);
    }
    CHECK_EQ(hak_span_oldest_ms(), hak_load_relaxed(&hak_span_free.sets[1].oldest_ms));
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 1), granules_bytes(2));
    CHECK_EQ(set_bytes(1), 0);
    CHECK_EQ(hak_span_purge(UINT64_MAX, granules_bytes(2), 9), granules_bytes(2));
    CHECK_EQ(set_bytes(2), 0);
    CHECK_EQ(hak_span_purge(hak_span_oldest_ms() - 1, 0, 9), 0);
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 9), granules_bytes(2));
    CHECK_EQ(hak_span_oldest_ms(), UINT64_MAX);
    CHECK(hak_span_heap_is_sound());
}

TEST(spans_of_several_sets_are_given_together)
{
    struct span *row[5];
    take_row(row, 5, 2, (const uint32_t[]){1, 1, 2, 0, 1});
    for (uint32_t i = 0; i < 5; i++)
        row[i]->freed_ms = hak_os_clock_ms();
    hak_span_give_many(row, 5);
    CHECK_EQ(set_bytes(1), granules_bytes(6));
    CHECK_EQ(set_bytes(2), granules_bytes(2));
    CHECK_EQ(set_bytes(0), granules_bytes(2));
    CHECK(hak_span_heap_is_sound());
}

TEST(a_set_that_a_jump_left_locked_restarts_empty_and_others_do_not)
{
    struct span *row[3];
    take_row(row, 3, 2, (const uint32_t[]){1, 2, 1});
    give(row[0]);
    give(row[1]);
    size_t known_bytes = hak_span_known_bytes(), clean_bytes = hak_span_clean_bytes();
    hak_span_lock_set(1);
    hak_span_mend();
    CHECK_EQ(hak_lock_held, 0);
    CHECK_EQ(set_bytes(1), 0);
    CHECK_EQ(set_bytes(2), granules_bytes(2));
    CHECK_EQ(hak_span_clean_bytes(), clean_bytes);
    CHECK_EQ(hak_span_known_bytes(), known_bytes - granules_bytes(2));
    CHECK(hak_span_heap_is_sound());
    give(row[2]); /* what was lost is no neighbour */
    CHECK_EQ(set_bytes(1), granules_bytes(2));
    hak_span_lock_set(2);
    hak_span_lock();
    hak_span_mend();
    CHECK_EQ(hak_lock_held, 0);
    CHECK_EQ(set_bytes(2) + hak_span_clean_bytes(), 0);
    CHECK_EQ(set_bytes(1), granules_bytes(2));
    CHECK(hak_span_heap_is_sound());
}

TEST(what_sets_serve_is_counted)
{
    give(take(3, 1));
    uint64_t reused = hak_load_relaxed(&hak_stat_globals.spans_reused);
    uint64_t bytes = hak_load_relaxed(&hak_stat_globals.spans_reused_bytes);
    uint64_t served = 0, served_bytes = 0;
    for (uint32_t i = 0; i < 5 || served == 0;
         i++) { /* the log is told of what was idle for 1 ms */
        give(take(3, 1));
        served = hak_span_sets_served(&served_bytes);
        uint64_t counted = hak_load_relaxed(&hak_stat_globals.spans_reused) - reused;
        CHECK_EQ(counted + served, i + 1);
        counted = hak_load_relaxed(&hak_stat_globals.spans_reused_bytes) - bytes;
        CHECK_EQ(counted + served_bytes, (i + 1) * granules_bytes(3));
    }
}

/* A thread that leaves set 2 locked while the other takes for set 1. */
static void *take_while_set_2_is_busy(void *place)
{
    struct span *span = take_unheard(4, 1);
    CHECK(span->first != *(uint32_t *)place);
    return span;
}

TEST(nobody_waits_for_another_set)
{
    uint32_t place = leave_row(1, 4, (const uint32_t[]){2});
    hak_span_lock_set(2);
    in_thread(take_while_set_2_is_busy, &place);
    hak_span_unlock_set(2);
    CHECK_EQ(set_bytes(2), granules_bytes(4));
    CHECK_EQ(take(4, 1)->first, place);
}

static void *lock_and_leave(void *set)
{
    hak_span_lock_set(*(uint32_t *)set);
    return NULL;
}

TEST(sets_that_others_had_in_a_copied_process_restart)
{
    uint32_t sets[] = {3, 7};
    for (uint32_t i = 0; i < 2; i++)
        give(take(2, sets[i]));
    for (uint32_t i = 0; i < 2; i++)
        in_thread(lock_and_leave, &sets[i]);
    uint32_t held = hak_lock_begin_settling();
    hak_span_mend();
    CHECK(!hak_lock_is_noted(HAK_LOCK_SPAN_SET));
    hak_lock_end_settling(held);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(!hak_span_lock_is_busy(sets[i]));
        CHECK_EQ(set_bytes(sets[i]), 0);
    }
    CHECK(hak_span_heap_is_sound());
}

TEST(a_handler_of_fork_that_looks_at_all_sets_has_their_locks)
{
    give(take(2, 4));
    hak_span_lock_sets();
    hak_span_lock();
    hak_lock_note_all();
    CHECK(hak_span_heap_is_sound());
    for (uint32_t set = 0; set < HAK_SPAN_SETS; set++)
        CHECK(hak_span_lock_is_busy(set));
    hak_lock_forget_all();
    hak_span_unlock();
    hak_span_unlock_sets();
    CHECK_EQ(hak_lock_held, 0);
}

TEST(what_grows_beyond_the_length_of_a_set_leaves_it)
{
    struct span *span = take(17, 1);
    CHECK(hak_span_extend(span, 18));
    give(span);
    CHECK_EQ(set_bytes(1), 0);
    CHECK_EQ(set_bytes(0), granules_bytes(18));
}

/* Neither set has enough, and the window cannot grow. */
TEST(sets_join_before_a_request_is_refused)
{
    need_faults();
    struct span *row[2];
    take_row(row, 2, 8, (const uint32_t[]){1, 2});
    uint32_t place = row[0]->first;
    take((uint32_t)(hak_span_clean_bytes() >> HAK_GRANULE_SHIFT), 0);
    CHECK_EQ(hak_span_clean_bytes(), 0);
    give(row[0]);
    give(row[1]);
    fail_every(1, FAULT_MAP | FAULT_PROTECT | FAULT_ADVISE);
    CHECK_EQ(take(16, 1)->first, place);
}

TEST(large_blocks_are_of_the_set_of_their_heap)
{
    CHECK(hak_process_start());
    struct large_request request = {granules_bytes(4), 16, LARGE_ANY, LARGE_ROOMY, 3};
    hak_large_give(hak_large_take_in(NULL, &request));
    CHECK_EQ(hak_span_set_count(), 1);
    let_threads_wait();
    struct span *span = hak_span_live_at(hak_granule_of(hak_large_take_in(NULL, &request)));
    CHECK_EQ(span->set, 3);
}

/* Each long request empties the sets before they have served anything. */
static void alternate(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        give(take_unheard(3, hak_span_set_of(1)));
        give(take_unheard((uint32_t)(hak_span_warm_bytes() >> HAK_GRANULE_SHIFT) + 18, 0));
    }
}

TEST(sets_pause_where_long_requests_empty_them)
{
    give(take(3, 1));
    alternate(6);
    CHECK(hak_span_has_sets());
    alternate(6);
    CHECK(!hak_span_has_sets());
    CHECK_EQ(hak_span_set_of(1), 0);
    uint64_t waits = hak_load_relaxed(&hak_span_set_waits);
    CHECK(waits > HAK_SPAN_SET_WAITS);
    hak_store_relaxed(&hak_lock_waits[HAK_LOCK_SPAN].count, waits);
    CHECK(hak_span_has_sets());
    alternate(20);
    CHECK(hak_load_relaxed(&hak_span_set_waits) > 2 * waits - HAK_SPAN_SET_WAITS);
}

TEST(what_was_taken_for_a_set_that_pauses_is_set_0s)
{
    struct span *span = take(3, 1);
    hak_store_relaxed(&hak_span_set_waits, HAK_SPAN_SET_WAITS + 1);
    give(span);
    CHECK_EQ(set_bytes(1), 0);
    CHECK_EQ(set_bytes(0), granules_bytes(3));
}

TEST(random_takes_and_gives_of_all_sets_leave_them_sound)
{
    static struct span *spans[64];
    uint64_t random = 5;
    CHECK(hak_process_start());
    for (uint32_t i = 0; i < 6000; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t at = (uint32_t)(random >> 33) % 64, set = (uint32_t)(random >> 50) % 5;
        uint32_t count = 1 + (uint32_t)(random >> 40) % 20;
        if (spans[at] == NULL)
            spans[at] = take(count, set);
        else if (i % 2 == 0 && count < spans[at]->count)
            hak_span_cut(spans[at], count);
        else if (i % 7 == 0)
            hak_span_give_purged(spans[at]), spans[at] = NULL;
        else if (i % 3 != 0 || !hak_span_extend(spans[at], spans[at]->count + 1))
            hak_span_give(spans[at]), spans[at] = NULL;
        if (i % 64 == 0)
            hak_span_purge(UINT64_MAX, granules_bytes(random >> 58), 2);
        if (i % 8 == 0)
            CHECK(hak_span_heap_is_sound());
    }
    for (uint32_t i = 0; i < 64; i++)
        if (spans[i] != NULL)
            hak_span_give(spans[i]);
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(hak_span_clean_bytes(), hak_load_relaxed(&hak_region.committed_bytes));
}

TEST(all_sets_that_a_jump_left_locked_restart)
{
    leave_row(2, 2, (const uint32_t[]){1, 9});
    hak_span_lock_sets();
    hak_span_mend();
    CHECK_EQ(hak_lock_held, 0);
    CHECK_EQ(set_bytes(1) + set_bytes(9), 0);
    for (uint32_t set = 1; set < HAK_SPAN_SETS; set++)
        CHECK(!hak_span_lock_is_busy(set));
    give(take(2, 9));
}
