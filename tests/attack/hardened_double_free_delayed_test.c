/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_double_free_delayed_test.c - a block is freed again after many others. */
#include "hardened.h"

static void free_later(size_t bytes)
{
    void *block = take_some(bytes);
    hak_free(block);
    for (int i = 0; i < 100; i++)
        hak_free(take_some(bytes));
    hak_free(block);
}

TEST(a_block_of_8_bytes_freed_again_much_later_is_reported)
{
    CHECK_ABORTS(free_later(TINY_BYTES), " free: pointer 0x");
}

TEST(a_block_of_4096_bytes_freed_again_much_later_is_reported)
{
    CHECK_ABORTS(free_later(PAGE_BYTES), " free: pointer 0x");
}

TEST(a_block_of_256_kib_freed_again_much_later_is_reported)
{
    CHECK_ABORTS(free_later(SPAN_BYTES), " free: pointer 0x");
}
