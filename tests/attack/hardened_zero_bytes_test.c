/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_zero_bytes_test.c - a block of no bytes is read, written or freed twice. */
#include "hardened.h"

static void read_it(void)
{
    (void)*(volatile char *)take_some(0);
}

static void write_it(void)
{
    *(volatile char *)take_some(0) = 'x';
}

static void free_twice(void)
{
    void *block = take_some(0);
    hak_free(block);
    hak_free(block);
}

TEST(a_block_of_no_bytes_cannot_be_read_or_written)
{
    CHECK_FAULTS(read_it());
    CHECK_FAULTS(write_it());
}

TEST(a_block_of_no_bytes_is_freed_once)
{
    CHECK_ABORTS(free_twice(), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(hak_free(take_some(0) + 1), "hakmem: double free: pointer 0x");
}

TEST(blocks_of_no_bytes_are_blocks)
{
    char *first = take_some(0), *second = take_some(0);
    CHECK(first != second);
    CHECK_EQ(hak_malloc_usable_size(first), 0);
    char *grown = hak_realloc(first, 100);
    memset(grown, 'x', 100);
    hak_free(grown);
    hak_free(second);
    CHECK_ABORTS(hak_free(first), "hakmem: double free: pointer 0x");
}
