/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/bins_test.c - bins of ready blocks, of slots and of processors. */
#include "heap/bins.h"

#include "check.h"
#include "heap/cache_list.h"
#include "heap/rooms.h"
#include "os/os.h"
#include "process/start.h"

#define CLASS 4u

static struct cache *cache;
static char blocks[2048];

static void start_in_slot(void)
{
    CHECK(hak_process_start());
    cache = hak_cache_take();
    CHECK(cache != NULL && !hak_cache_is_processors(cache));
    hak_here = &cache->here;
}

static void resize(uint32_t capacity)
{
    CHECK(hak_rooms_try_lock());
    CHECK(hak_room_resize(cache, CLASS, capacity));
    hak_rooms_unlock();
    CHECK_EQ(hak_cache_capacity(cache, CLASS), capacity);
}

static void push(uint32_t from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        CHECK(hak_bin_push(CLASS, &blocks[from + i]));
}

static void pop(uint32_t from, uint32_t count)
{
    for (uint32_t i = count; i > 0; i--)
        CHECK_EQ(hak_bin_pop(CLASS), &blocks[from + i - 1]);
}

static void check_in_all_states(void)
{
    CHECK_EQ(hak_bin_pop(CLASS), NULL);
    CHECK(!hak_bin_push(CLASS, blocks)); /* no slots yet */
    resize(3);
    push(0, 3);
    CHECK(!hak_bin_push(CLASS, &blocks[3]));
    CHECK_EQ(hak_cache_count(cache, CLASS), 3);
    pop(0, 3);
    CHECK_EQ(hak_bin_pop(CLASS), NULL);

    push(0, 3);
    resize(HAK_TINY ? 3 : 900); /* to another room, blocks and all */
    if (!HAK_TINY)
        push(3, 897);
    CHECK(!hak_bin_push(CLASS, &blocks[900]));
    pop(0, HAK_TINY ? 3 : 900);
    CHECK_EQ(hak_bin_pop(CLASS), NULL);

    void *some[8];
    resize(3);
    for (int i = 0; i < 8; i++)
        some[i] = &blocks[i];
    CHECK_EQ(hak_cache_push_some(cache, CLASS, some, 8), 3);
    CHECK_EQ(hak_cache_push_some(cache, CLASS, some, 8), 0);
    CHECK_EQ(hak_cache_pop_some(cache, CLASS, some, 2), 2);
    CHECK_EQ(some[0], &blocks[5]);
    CHECK_EQ(some[1], &blocks[6]);
    CHECK_EQ(hak_cache_pop_some(cache, CLASS, some, 8), 1);
    CHECK_EQ(hak_cache_pop_some(cache, CLASS, some, 8), 0);
}

static void check_closed(void)
{
    uint32_t top;
    resize(3);
    push(0, 2);
    CHECK(hak_rooms_try_lock());
    CHECK(hak_bin_close(cache->bins, CLASS, &top));
    CHECK_EQ(hak_bin_pop(CLASS), NULL);
    CHECK(!hak_bin_push(CLASS, &blocks[2]));
    CHECK_EQ(hak_cache_count(cache, CLASS), 2);
    void *some[4] = {&blocks[2]};
    CHECK_EQ(hak_cache_pop_some(cache, CLASS, some, 4), 0);
    CHECK_EQ(hak_cache_push_some(cache, CLASS, some, 1), 0);
    CHECK(!hak_bin_close(cache->bins, CLASS, &top));
    hak_rooms_mend(cache); /* as after a jump */
    hak_rooms_unlock();
    CHECK_EQ(hak_cache_capacity(cache, CLASS), 2);
    pop(0, 2);
    CHECK_EQ(hak_bin_pop(CLASS), NULL);
}

/* What a thread leaves that stops while it gives a bin its first room. */
static void check_first_room(void)
{
    CHECK(hak_rooms_try_lock());
    cache->rooms[CLASS].bottom = HAK_FIRST_SLOT + 31;
    cache->rooms[CLASS].order = 5;
    hak_rooms_mend(cache);
    hak_rooms_unlock();
    CHECK_EQ(hak_cache_capacity(cache, CLASS), 0);
    resize(3);
    push(0, 3);
    CHECK(!hak_bin_push(CLASS, &blocks[3]));
    pop(0, 3);
    CHECK_EQ(hak_bin_pop(CLASS), NULL);
}

/* What a thread leaves that stops while it gives the cache other bins. */
static void check_begun_swap(void)
{
    resize(3);
    push(0, 3);
    CHECK(hak_rooms_try_lock());
    cache->used_words = HAK_FIRST_SLOT;
    memset(cache->free_rooms, 0, sizeof cache->free_rooms);
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        cache->rooms[i].bottom = 0;
    hak_rooms_mend(cache);
    for (uint32_t i = 0; i < 20; i++)
        if (i != CLASS)
            CHECK(hak_room_resize(cache, i, 30));
    hak_rooms_unlock();
    for (uint32_t i = 0; i < 20; i++)
        while (i != CLASS && hak_bin_push(i, &blocks[100]))
            continue;
    pop(0, 3);
    CHECK_EQ(hak_bin_pop(CLASS), NULL);
    for (uint32_t i = 0; i < 20; i++)
        while (i != CLASS && hak_bin_pop(i) != NULL)
            continue;
}

/* What is mended holds more than it may, as a bin does that was lowered while it was filled. */
static void check_overfull_is_mended(void)
{
    resize(60);
    push(0, 40);
    CHECK(hak_rooms_try_lock());
    CHECK(hak_room_resize(cache, CLASS + 1, 7)); /* the topmost room */
    CHECK(hak_room_resize(cache, CLASS, 0));
    for (uint32_t i = 0; i < 5; i++)
        CHECK(hak_bin_push(CLASS + 1, &blocks[100 + i]));
    hak_rooms_mend(cache);
    CHECK(hak_room_resize(cache, CLASS, 7));
    hak_rooms_unlock();
    for (uint32_t i = 5; i-- > 0;)
        CHECK_EQ(hak_bin_pop(CLASS + 1), &blocks[100 + i]);
    CHECK_EQ(hak_bin_pop(CLASS + 1), NULL);
    pop(0, 40);
    CHECK_EQ(hak_bin_pop(CLASS), NULL);
}

static uint64_t popped(void)
{
    return hak_load_relaxed(&cache->popped[CLASS]) - hak_bin_of(cache->bins, CLASS)->countdown;
}

static void check_counted(void)
{
    resize(3);
    for (uint32_t i = 0; i < 140000; i++) {
        CHECK_EQ(popped(), i);
        push(i % 7, 1);
        pop(i % 7, 1);
        CHECK_EQ(hak_bin_pop(CLASS), NULL); /* counts for nothing */
    }
}

/* With a sample drawn again and again, and others that pop and push as much between. */
static void check_counted_while_drawn(void)
{
    resize(3);
    hak_draw_start(3 * hak_size_classes[CLASS].block_bytes, 0, 0);
    hak_bin_draw(cache, CLASS);
    for (uint32_t i = 0; i < 140000; i++) {
        CHECK_EQ(popped(), i);
        CHECK(hak_load_relaxed(&cache->drawn[CLASS]) != DRAW_NONE);
        push(i % 7, 1);
        pop(i % 7, 1);
    }
    hak_draw_start(0, 0, 0);
    for (uint32_t i = 0; i < 140000; i++) {
        push(i % 7, 1);
        pop(i % 7, 1);
    }
    CHECK_EQ(popped(), 280000);
}

/* A closed bin keeps its countdown: opening it stores the whole header. */
static void check_closed_is_not_drawn(void)
{
    uint32_t top;
    resize(3);
    push(0, 2);
    pop(1, 1);
    hak_draw_start(3 * hak_size_classes[CLASS].block_bytes, 0, 0);
    CHECK(hak_bin_close(cache->bins, CLASS, &top));
    uint32_t countdown = hak_bin_of(cache->bins, CLASS)->countdown;
    hak_bin_draw(cache, CLASS);
    CHECK_EQ(hak_bin_of(cache->bins, CLASS)->countdown, countdown);
    CHECK_EQ(hak_load_relaxed(&cache->drawn[CLASS]), DRAW_NONE);
    CHECK_EQ(popped(), 1);
    hak_draw_start(0, 0, 0);
}

static bool is_in_processor_mode(void)
{
    cache = hak_thread_cache();
    if (hak_caches_reason() != RSEQ_PROCESSOR)
        return false;
    CHECK(hak_cache_is_processors(cache));
    return true;
}

/* For a bin of a processor, where there are such, and for one of a slot. */
static void check_both(void (*check)(void))
{
    if (is_in_processor_mode())
        check();
    start_in_slot();
    check();
}

TEST(a_bin_keeps_its_blocks_in_order_through_all_sizes)
{
    check_both(check_in_all_states);
}

TEST(a_closed_bin_is_empty_and_full_until_it_is_mended)
{
    check_both(check_closed);
}

TEST(a_bin_whose_first_room_was_left_half_given_has_none)
{
    check_both(check_first_room);
}

TEST(bins_that_were_to_be_replaced_keep_their_slots)
{
    check_both(check_begun_swap);
}

TEST(mended_bins_that_hold_more_than_they_may_keep_to_their_slots)
{
    if (HAK_TINY)
        SKIP("tiny bins do not hold so much");
    check_both(check_overfull_is_mended);
}

TEST(each_pop_is_counted_once)
{
    check_both(check_counted);
}

TEST(each_pop_is_counted_once_while_samples_are_drawn)
{
    check_both(check_counted_while_drawn);
}

TEST(a_closed_bin_is_not_drawn)
{
    check_both(check_closed_is_not_drawn);
}

TEST(bins_of_a_slot_move_to_more_memory_with_all_that_is_in_them)
{
    start_in_slot();
    uint32_t before = cache->word_count;
    resize(3);
    push(0, 3);
    CHECK(hak_rooms_try_lock());
    for (uint32_t i = CLASS + 1; cache->word_count == before; i++)
        CHECK(hak_room_resize(cache, i, HAK_BIN_SLOTS_LEAST * 8 - 1));
    hak_rooms_unlock();
    CHECK_EQ(hak_word_peek(&hak_bins_of[cache->id]), cache->bins);
    CHECK_EQ(cache->bins->cache, cache);
    pop(0, 3);
}

TEST(a_room_that_was_outgrown_serves_another_bin)
{
    if (HAK_TINY)
        SKIP("tiny bins do not grow");
    start_in_slot();
    resize(3);
    uint32_t used = cache->used_words;
    resize(100);
    CHECK_EQ(cache->used_words, used + 128);
    CHECK(hak_rooms_try_lock());
    CHECK(hak_room_resize(cache, CLASS + 1, 3));
    hak_rooms_unlock();
    CHECK_EQ(cache->used_words, used + 128);
    CHECK_EQ(hak_bin_pop(CLASS + 1), NULL);
}

static void check_on_top(void)
{
    resize(3);
    push(0, 2);
    CHECK(hak_bin_has_on_top(CLASS, &blocks[1]) && !hak_bin_has_on_top(CLASS, &blocks[0]));
    CHECK(!hak_bin_push(CLASS, &blocks[1]));
    CHECK_EQ(hak_cache_count(cache, CLASS), 2);
    pop(0, 2);
    CHECK(!hak_bin_has_on_top(CLASS, &blocks[0]));
    push(0, 1);
    pop(0, 1);
}

TEST(a_block_that_is_on_top_of_a_bin_is_not_pushed_again)
{
    check_both(check_on_top);
}

TEST(bins_are_found_as_tags_name_them)
{
    struct bins *bins = (struct bins *)&hak_bins_closed;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++)
        CHECK_EQ(hak_bin_at(bins, HAK_BIN_OF_CLASS(i)), hak_bin_of(bins, i));
}

TEST(a_thread_that_has_not_called_yet_has_bins_that_are_empty_and_full)
{
    struct rseq_area *areas[] = {&hak_here_unasked, &hak_here_never};
    CHECK_EQ(hak_here, &hak_here_unasked);
    for (int i = 0; i < 2; i++) {
        hak_here = areas[i];
        CHECK_EQ(hak_own_cache(), NULL);
        for (uint32_t k = 0; k < HAK_CLASS_COUNT; k++) {
            CHECK_EQ(hak_bin_pop(k), NULL);
            CHECK(!hak_bin_push(k, blocks));
        }
    }
}

TEST(what_a_processor_s_cache_holds_is_drained_once_it_is_idle)
{
    if (!is_in_processor_mode())
        SKIP("no caches by processor here");
    hak_caches_drain_idle(UINT64_MAX); /* what the start left */
    resize(3);
    uint64_t counted = popped();
    uint64_t now = hak_os_clock_ms();
    struct bins *before = cache->bins;
    hak_caches_drain_idle(now + 1000); /* it holds nothing */
    CHECK_EQ(cache->bins, before);
    CHECK_EQ(popped(), counted);
}
