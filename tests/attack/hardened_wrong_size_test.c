/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_wrong_size_test.c - a block is freed with another size. */
#include "hardened.h"

static void free_wrong(size_t bytes, size_t said)
{
    hak_free_sized(take_some(bytes), said);
}

static void delete_wrong(size_t bytes, size_t said)
{
    hak_delete_sized(volatile_block(hak_new(bytes)), said);
}

static void delete_array_wrong(size_t bytes, size_t said)
{
    hak_delete_array_sized(volatile_block(hak_new_array(bytes)), said);
}

TEST(a_size_of_8_bytes_that_is_not_the_right_one_is_reported)
{
    CHECK_ABORTS(free_wrong(TINY_BYTES, TINY_BYTES + 1), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(delete_wrong(TINY_BYTES, TINY_BYTES - 1), "freed with another size\n");
    CHECK_ABORTS(delete_array_wrong(TINY_BYTES, 2 * TINY_BYTES), "freed with another size\n");
    CHECK_EXITS(free_wrong(TINY_BYTES, TINY_BYTES), 0);
    CHECK_EXITS(delete_wrong(TINY_BYTES, TINY_BYTES), 0);
    CHECK_EXITS(delete_array_wrong(TINY_BYTES, TINY_BYTES), 0);
}

TEST(a_size_of_4096_bytes_that_is_not_the_right_one_is_reported)
{
    CHECK_ABORTS(free_wrong(PAGE_BYTES, PAGE_BYTES + 1), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(delete_wrong(PAGE_BYTES, PAGE_BYTES - 1), "freed with another size\n");
    CHECK_ABORTS(delete_array_wrong(PAGE_BYTES, 2 * PAGE_BYTES), "freed with another size\n");
    CHECK_EXITS(free_wrong(PAGE_BYTES, PAGE_BYTES), 0);
    CHECK_EXITS(delete_wrong(PAGE_BYTES, PAGE_BYTES), 0);
    CHECK_EXITS(delete_array_wrong(PAGE_BYTES, PAGE_BYTES), 0);
}

TEST(a_size_of_256_kib_that_is_not_the_right_one_is_reported)
{
    CHECK_ABORTS(free_wrong(SPAN_BYTES, SPAN_BYTES + 1), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(delete_wrong(SPAN_BYTES, SPAN_BYTES - 1), "freed with another size\n");
    CHECK_ABORTS(delete_array_wrong(SPAN_BYTES, 2 * SPAN_BYTES), "freed with another size\n");
    CHECK_EXITS(free_wrong(SPAN_BYTES, SPAN_BYTES), 0);
    CHECK_EXITS(delete_wrong(SPAN_BYTES, SPAN_BYTES), 0);
    CHECK_EXITS(delete_array_wrong(SPAN_BYTES, SPAN_BYTES), 0);
}
