/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/magazine_test.c - bins of ready blocks, with and without slots behind them. */
#include "cache/lifecycle.h"
#include "cache/magazine.h"
#include "check.h"

static void *sentinel;
static struct magazine magazine;
static struct bin bin = {&sentinel, &sentinel};
static char blocks[64];

static void start(uint32_t capacity)
{
    CHECK(hak_process_start());
    CHECK(hak_magazine_resize(&magazine, &bin, capacity));
    CHECK_EQ(magazine.capacity, capacity);
}

static void push(uint32_t from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK(!hak_bin_is_full(&bin));
        hak_bin_push(&bin, &blocks[from + i]);
    }
}

TEST(a_bin_on_its_sentinel_is_empty_and_full)
{
    CHECK_EQ(hak_bin_pop(&bin), NULL);
    CHECK_EQ(hak_bin_pop(&bin), NULL);
    CHECK(hak_bin_is_full(&bin));
    CHECK_EQ(hak_magazine_count(&magazine, &bin), 0);
    CHECK_EQ(bin.top, &sentinel);
}

TEST(the_block_pushed_last_is_popped_first)
{
    start(3);
    push(0, 3);
    CHECK(hak_bin_is_full(&bin));
    CHECK_EQ(hak_magazine_count(&magazine, &bin), 3);
    for (int i = 2; i >= 0; i--)
        CHECK_EQ(hak_bin_pop(&bin), &blocks[i]);
    CHECK_EQ(hak_bin_pop(&bin), NULL);
    CHECK_EQ(hak_magazine_count(&magazine, &bin), 0);
}

TEST(a_resized_magazine_keeps_its_blocks)
{
    start(3);
    push(0, 3);
    CHECK(hak_magazine_resize(&magazine, &bin, 40));
    CHECK_EQ(hak_magazine_count(&magazine, &bin), 3);
    push(3, 37);
    CHECK(hak_bin_is_full(&bin));
    for (int i = 39; i >= 20; i--)
        CHECK_EQ(hak_bin_pop(&bin), &blocks[i]);
    CHECK(hak_magazine_resize(&magazine, &bin, 20));
    CHECK(hak_bin_is_full(&bin));
    for (int i = 19; i >= 0; i--)
        CHECK_EQ(hak_bin_pop(&bin), &blocks[i]);
    CHECK_EQ(hak_bin_pop(&bin), NULL);
}

TEST(a_capacity_within_the_same_array_moves_the_limit_only)
{
    start(5);
    void **slots = magazine.slots;
    push(0, 4);
    CHECK(hak_magazine_resize(&magazine, &bin, 6));
    CHECK_EQ(magazine.slots, slots);
    push(4, 2);
    CHECK(hak_bin_is_full(&bin));
}

TEST(the_oldest_blocks_leave_and_the_others_keep_their_order)
{
    void *taken[4];
    start(10);
    push(0, 9);
    hak_magazine_take_oldest(&magazine, &bin, taken, 4);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(taken[i], &blocks[i]);
    CHECK_EQ(hak_magazine_count(&magazine, &bin), 5);
    for (int i = 8; i >= 4; i--)
        CHECK_EQ(hak_bin_pop(&bin), &blocks[i]);
    CHECK_EQ(hak_bin_pop(&bin), NULL);
}

TEST(a_closed_bin_is_empty_and_full_until_it_is_opened)
{
    start(10);
    push(0, 9);
    CHECK_EQ(hak_magazine_close(&magazine, &bin), 9);
    CHECK_EQ(hak_bin_pop(&bin), NULL);
    CHECK(hak_bin_is_full(&bin));
    CHECK_EQ(hak_magazine_peek(&magazine, &bin), 0);
    hak_magazine_open(&magazine, &bin, 9);
    CHECK(!hak_bin_is_full(&bin));
    CHECK_EQ(hak_bin_pop(&bin), &blocks[8]);
}

TEST(a_magazine_that_a_handler_filled_meanwhile_is_neither_cut_nor_removed)
{
    start(10);
    push(0, 9);
    hak_magazine_remove(&magazine, &bin, &sentinel);
    CHECK_EQ(hak_magazine_count(&magazine, &bin), 9);
    void *taken[20];
    CHECK_EQ(hak_magazine_take_oldest(&magazine, &bin, taken, 20), 9);
    CHECK_EQ(hak_bin_pop(&bin), NULL);
}

TEST(a_removed_magazine_leaves_the_bin_on_the_sentinel)
{
    start(3);
    void **slots = magazine.slots;
    hak_magazine_remove(&magazine, &bin, &sentinel);
    CHECK_EQ(magazine.capacity, 0);
    CHECK_EQ(bin.top, &sentinel);
    CHECK(hak_bin_is_full(&bin));
    CHECK_EQ(hak_bin_pop(&bin), NULL);
    hak_magazine_remove(&magazine, &bin, &sentinel);
    start(3);
    CHECK_EQ(magazine.slots, slots);
    CHECK_EQ(hak_bin_pop(&bin), NULL);
}

TEST(bins_are_found_as_tags_name_them)
{
    struct cache_bins *cache = &hak_thread_unstarted;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++)
        CHECK_EQ(hak_bin_at(cache, HAK_BIN_OF_CLASS(i)), &cache->bins[i]);
    CHECK(hak_bin_is_full(hak_bin_at(cache, HAK_TAG_NONE)));
}

TEST(a_thread_without_a_heap_has_bins_that_are_empty_and_full)
{
    struct cache_bins *caches[] = {&hak_thread_unstarted, &hak_thread_exited};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(caches[i]->is_heap, 0);
        CHECK_EQ(caches[i]->committed_bytes, 0);
        for (uint32_t k = 0; k < HAK_CLASS_COUNT; k++) {
            CHECK_EQ(hak_bin_pop(&caches[i]->bins[k]), NULL);
            CHECK(hak_bin_is_full(&caches[i]->bins[k]));
        }
    }
    CHECK(hak_thread != NULL);
}
