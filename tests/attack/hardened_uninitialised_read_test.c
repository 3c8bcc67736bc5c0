/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_uninitialised_read_test.c - a new block is read. */
#include "hardened.h"

static void read_new(size_t bytes)
{
    char *blocks[40];
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 40; i++) {
            blocks[i] = take_some(bytes);
            for (size_t at = 0; at < bytes; at++)
                if (*(volatile char *)(blocks[i] + at) != 0)
                    _exit(3);
            memset(blocks[i], 'x', bytes);
        }
        for (int i = 0; i < 40; i++)
            hak_free(blocks[i]);
    }
}

TEST(a_new_block_of_8_bytes_reads_as_zero)
{
    CHECK_EXITS(read_new(TINY_BYTES), 0);
}

TEST(a_new_block_of_4096_bytes_reads_as_zero)
{
    CHECK_EXITS(read_new(PAGE_BYTES), 0);
}

TEST(a_new_block_of_256_kib_reads_as_zero)
{
    CHECK_EXITS(read_new(SPAN_BYTES), 0);
}
