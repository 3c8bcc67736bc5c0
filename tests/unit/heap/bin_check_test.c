/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/bin_check_test.c - a block that is in a batch twice is found, wherever. */
#include "../../check.h"

#include "base/bits.h"
#include "heap/bin_check.h"
#include "slab/size_class.h"

#define BLOCKS 4095
#define STRIDES 4

static uint64_t words[2048];
static const struct bin_seen seen = {words, 2048};
static void *blocks[BLOCKS];
static const size_t strides[STRIDES] = {8, 16, 4096, 131072};

static void check(uint32_t count, uint32_t word_count)
{
    hak_bin_check_once(&(struct bin_checked){blocks, count, count}, 3,
                       (struct bin_seen){words, word_count});
}

static void fill(size_t stride)
{
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = (void *)(0x7f0000000000 + i * stride);
}

TEST(different_blocks_pass_however_far_apart_and_however_full_the_table)
{
    for (size_t i = 0; i < STRIDES; i++) {
        fill(strides[i]);
        for (uint32_t count = 0; count <= BLOCKS; count = count * 2 + 1) {
            check(count, 2048);
            check(count, 64); /* many share a bit */
        }
    }
    CHECK_EQ((uintptr_t)blocks[0], 0x7f0000000000);
}

static void twice(size_t stride, uint32_t first, uint32_t second, uint32_t count)
{
    fill(stride);
    blocks[second] = blocks[first];
    check(count, 2048);
}

TEST(a_block_that_is_there_twice_is_reported)
{
    for (size_t i = 0; i < STRIDES; i++) {
        CHECK_ABORTS(twice(strides[i], 0, 1, 2), "hakmem: double free: pointer 0x7f0000000000");
        CHECK_ABORTS(twice(strides[i], 0, BLOCKS - 1, BLOCKS), "already free");
        CHECK_ABORTS(twice(strides[i], BLOCKS / 2, BLOCKS / 2 + 2, BLOCKS), "already free");
    }
}

/* Neighbours upwards, then neighbours downwards that end `overlap` blocks within them. */
static bool rise_and_fall(uint32_t overlap)
{
    size_t block_bytes = hak_size_classes[3].block_bytes;
    for (size_t i = 0; i < 200; i++)
        blocks[i] = (void *)(0x7f0000000000 + i * block_bytes);
    for (size_t i = 200; i < 400; i++)
        blocks[i] = (void *)(0x7f0000000000 + (599 - overlap - i) * block_bytes);
    struct rows rest = {.count = 0};
    bool are_apart = hak_bin_check_rows(&(struct bin_checked){blocks, 200, 400}, 3, &rest);
    CHECK_EQ(rest.count, are_apart);
    CHECK(!are_apart || (rest.rows[0].first == (uintptr_t)blocks[200] &&
                         rest.rows[0].length == 200 && rest.rows[0].step == -block_bytes));
    return are_apart;
}

TEST(stretches_of_neighbours_pass_where_they_are_few_and_lie_apart)
{
    CHECK(rise_and_fall(0));
    CHECK(!rise_and_fall(1));
    CHECK(!rise_and_fall(200));
    fill(hak_size_classes[3].block_bytes);
    for (uint32_t i = 0; i < 1000; i += 100) /* more stretches than are looked at one by one */
        blocks[i] = (void *)(0x7e0000000000 + (size_t)i * 4096);
    struct rows rest;
    CHECK(!hak_bin_check_rows(&(struct bin_checked){blocks, 1000, 1000}, 3, &rest));
}

static void one_is_kept_of_two(uint32_t first, uint32_t second)
{
    fill(16);
    blocks[second] = blocks[first];
    hak_bin_check_once(&(struct bin_checked){blocks, BLOCKS / 4, BLOCKS}, 3, seen);
}

TEST(what_stays_in_the_bin_is_searched_for_among_what_is_flushed)
{
    CHECK_ABORTS(one_is_kept_of_two(0, BLOCKS - 1), "already free");
    CHECK_ABORTS(one_is_kept_of_two(BLOCKS / 4 - 1, BLOCKS / 4), "already free");
    CHECK_ABORTS(one_is_kept_of_two(3, 5), "already free");
    one_is_kept_of_two(BLOCKS / 4, BLOCKS - 1); /* the slab sees that */
}
