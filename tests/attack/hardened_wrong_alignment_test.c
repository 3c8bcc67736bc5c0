/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_wrong_alignment_test.c - a block is freed with another alignment. */
#include "hardened.h"

static void delete_wrong(size_t bytes, size_t alignment, size_t said)
{
    hak_delete_aligned(volatile_block(hak_new_aligned(bytes, alignment)), said);
}

static void delete_plainly(size_t bytes)
{
    hak_delete(volatile_block(hak_new_aligned(bytes, 64)));
}

static void free_wrong(size_t bytes, size_t alignment, size_t said)
{
    hak_free_aligned_sized(volatile_block(hak_aligned_alloc(alignment, bytes)), said, bytes);
}

TEST(an_alignment_of_8_bytes_that_is_not_the_right_one_is_reported)
{
    CHECK_ABORTS(delete_wrong(TINY_BYTES, 64, 128), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(delete_plainly(TINY_BYTES), "freed with another alignment\n");
    CHECK_ABORTS(free_wrong(TINY_BYTES, 64, 32), "freed with another alignment\n");
    CHECK_EXITS(delete_wrong(TINY_BYTES, 64, 64), 0);
    CHECK_EXITS(free_wrong(TINY_BYTES, 64, 64), 0);
    CHECK_EXITS(free_wrong(TINY_BYTES, 16, 16), 0);
}

TEST(an_alignment_of_4096_bytes_that_is_not_the_right_one_is_reported)
{
    CHECK_ABORTS(delete_wrong(PAGE_BYTES, 64, 128), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(delete_plainly(PAGE_BYTES), "freed with another alignment\n");
    CHECK_ABORTS(free_wrong(PAGE_BYTES, 64, 32), "freed with another alignment\n");
    CHECK_EXITS(delete_wrong(PAGE_BYTES, 64, 64), 0);
    CHECK_EXITS(free_wrong(PAGE_BYTES, 64, 64), 0);
    CHECK_EXITS(free_wrong(PAGE_BYTES, 16, 16), 0);
}

TEST(an_alignment_of_256_kib_that_is_not_the_right_one_is_reported)
{
    CHECK_ABORTS(delete_wrong(SPAN_BYTES, 64, 128), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(delete_plainly(SPAN_BYTES), "freed with another alignment\n");
    CHECK_ABORTS(free_wrong(SPAN_BYTES, 64, 32), "freed with another alignment\n");
    CHECK_EXITS(delete_wrong(SPAN_BYTES, 64, 64), 0);
    CHECK_EXITS(free_wrong(SPAN_BYTES, 64, 64), 0);
    CHECK_EXITS(free_wrong(SPAN_BYTES, 16, 16), 0);
}
