/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_read_after_free_test.c - a block is read after it was freed. */
#include "hardened.h"

static void read_freed(size_t bytes)
{
    char *block = take_some(bytes);
    memset(block, 'x', bytes);
    hak_free(block);
    for (size_t i = 0; i < bytes; i++)
        if (*(volatile char *)(block + i) != 0)
            _exit(3);
}

TEST(nothing_is_left_to_read_in_8_bytes_after_free)
{
    CHECK_EXITS(read_freed(TINY_BYTES), 0);
}

TEST(nothing_is_left_to_read_in_4096_bytes_after_free)
{
    CHECK_EXITS(read_freed(PAGE_BYTES), 0);
}

TEST(nothing_is_left_to_read_in_256_kib_after_free)
{
    CHECK_FAULTS(read_freed(SPAN_BYTES));
}
