/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/words_test.c - blocks of a bin are gathered by the words of their bitmaps, and
 * are returned word by word. */
#include "check.h"

#include "base/bits.h"
#include "heap/bin_check.h"
#include "heap/flush.h"
#include "heap/heaps.h"
#include "heap/refill.h"
#include "process/start.h"
#include "slab/size_class.h"
#include "slabs.h"

#define CLASS hak_class_of(48)
#define COUNT 1000u
#define WORDS 512u

static void *blocks[COUNT];
static struct word room[WORDS];
static uint16_t places[2 * WORDS];
static struct words words = {room, places, WORDS, 0};
static struct stat_block stats;

/* Blocks of one heap, in the order of their addresses but for some that were exchanged. */
static struct heap *take_shuffled(uint32_t distance)
{
    CHECK(hak_process_start());
    struct heap *heap = hak_heap_enter();
    CHECK(heap != NULL);
    for (uint32_t i = 0; i < COUNT; i++)
        CHECK((blocks[i] = take_block(heap, CLASS)) != NULL);
    hak_heap_leave(heap);
    for (uint32_t i = 0; i + distance < COUNT && distance != 0; i += 3) {
        void *block = blocks[i];
        blocks[i] = blocks[i + distance];
        blocks[i + distance] = block;
    }
    return heap;
}

static uint64_t used_blocks(const struct heap *heap)
{
    return (uint64_t)hak_load_relaxed(&heap->owner.use[CLASS].used_blocks);
}

static bool gather(uint32_t kept, uint32_t count)
{
    return hak_bin_check_words(&(struct bin_checked){blocks, kept, count}, CLASS, &words);
}

TEST(blocks_are_divided_into_those_kept_and_those_given)
{
    for (uint32_t distance = 0; distance < 4; distance = distance * 2 + 1) {
        struct heap *heap = take_shuffled(distance);
        uint64_t used = used_blocks(heap);
        if (!gather(COUNT / 4, COUNT))
            SKIP("words are of too few blocks");
        uint32_t kept = 0, given = 0;
        for (uint32_t i = 0; i < words.count; i++) {
            CHECK_EQ(room[i].kept & room[i].given, 0);
            kept += hak_bit_count(room[i].kept);
            given += hak_bit_count(room[i].given);
        }
        CHECK_EQ(kept, COUNT / 4);
        CHECK_EQ(given, COUNT - COUNT / 4);
        hak_flush_words(&words, CLASS, &stats);
        CHECK_EQ(used_blocks(heap), used - given);
        for (uint32_t i = 0; i < COUNT / 4; i++)
            hak_flush(&blocks[i], 1, CLASS, &stats);
        CHECK_EQ(used_blocks(heap), used - COUNT);
    }
}

static void twice(uint32_t first, uint32_t second)
{
    blocks[second] = blocks[first];
    gather(COUNT / 4, COUNT);
}

TEST(a_block_that_is_there_twice_is_reported)
{
    take_shuffled(3);
    if (!gather(COUNT / 4, COUNT))
        SKIP("words are of too few blocks");
    CHECK_ABORTS(twice(0, 1), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(twice(0, COUNT / 4 - 1), "already free");
    CHECK_ABORTS(twice(COUNT / 4 - 1, COUNT / 4), "already free");
    CHECK_ABORTS(twice(3, COUNT - 1), "already free");
    CHECK_ABORTS(twice(COUNT - 2, COUNT - 1), "already free");
    CHECK_ABORTS((blocks[5] = (char *)blocks[5] + 8, gather(COUNT / 4, COUNT)), "invalid free");
}

TEST(blocks_of_more_words_than_there_is_room_for_stay_as_they_are)
{
    struct heap *heap = take_shuffled(0);
    uint64_t used = used_blocks(heap);
    if (!gather(0, COUNT))
        SKIP("words are of too few blocks");
    CHECK(words.count > 8);
    struct words few = {room, places, 8, 0};
    CHECK(!hak_bin_check_words(&(struct bin_checked){blocks, 0, COUNT}, CLASS, &few));
    CHECK_EQ(used_blocks(heap), used);
}

TEST(blocks_that_lie_far_from_each_other_do_not_suit)
{
    take_shuffled(0);
    if (!gather(0, COUNT))
        SKIP("words are of too few blocks");
    for (uint32_t i = 0; i < COUNT / 2; i += 2) {
        void *block = blocks[i];
        blocks[i] = blocks[COUNT - 1 - i];
        blocks[COUNT - 1 - i] = block;
    }
    CHECK(!gather(0, COUNT / 2));
}

TEST(words_are_left_at_the_door_of_a_busy_heap)
{
    struct heap *heap = take_shuffled(3);
    uint64_t used = used_blocks(heap);
    if (!gather(0, COUNT))
        SKIP("words are of too few blocks");
    CHECK(hak_heap_try_enter(heap));
    hak_flush_words(&words, CLASS, &stats);
    CHECK_EQ(used_blocks(heap), used);
    CHECK_EQ(hak_load_relaxed(&stats.counters[HAK_STAT_remote_blocks]), COUNT);
    CHECK_EQ(hak_load_relaxed(&stats.counters[HAK_STAT_remote_publishes]), words.count);
    hak_heap_collect(heap);
    CHECK_EQ(used_blocks(heap), used - COUNT);
    hak_heap_leave(heap);
}
