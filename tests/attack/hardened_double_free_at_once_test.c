/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_double_free_at_once_test.c - a block is freed twice in a row. */
#include "hardened.h"

static void free_twice(size_t bytes)
{
    void *block = take_some(bytes);
    hak_free(block);
    hak_free(block);
}

TEST(a_block_of_8_bytes_freed_twice_in_a_row_is_reported_at_once)
{
    CHECK_ABORTS(free_twice(TINY_BYTES), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_twice(TINY_BYTES), ", already free\n");
}

TEST(a_block_of_4096_bytes_freed_twice_in_a_row_is_reported_at_once)
{
    CHECK_ABORTS(free_twice(PAGE_BYTES), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_twice(PAGE_BYTES), ", already free\n");
}

TEST(a_block_of_256_kib_freed_twice_in_a_row_is_reported_at_once)
{
    CHECK_ABORTS(free_twice(SPAN_BYTES), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_twice(SPAN_BYTES), ", already free\n");
}
