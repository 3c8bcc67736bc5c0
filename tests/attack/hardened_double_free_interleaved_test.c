/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_double_free_interleaved_test.c - another block is freed between two
 * frees. */
#include "hardened.h"

static void free_around(size_t bytes)
{
    void *block = take_some(bytes), *other = take_some(bytes);
    hak_free(block);
    hak_free(other);
    hak_free(block);
}

TEST(a_block_of_8_bytes_freed_before_and_after_another_is_reported)
{
    CHECK_ABORTS(free_around(TINY_BYTES), "hakmem: double free: pointer 0x");
}

TEST(a_block_of_4096_bytes_freed_before_and_after_another_is_reported)
{
    CHECK_ABORTS(free_around(PAGE_BYTES), "hakmem: double free: pointer 0x");
}

TEST(a_block_of_256_kib_freed_before_and_after_another_is_reported)
{
    CHECK_ABORTS(free_around(SPAN_BYTES), "hakmem: double free: pointer 0x");
}
