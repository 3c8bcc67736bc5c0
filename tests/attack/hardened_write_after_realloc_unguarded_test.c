/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_write_after_realloc_unguarded_test.c - the old place of a large block is
 * written to, or read, after realloc moved it, and has no guards. */
#define MEMBERS "quarantine+zero+canary"
#include "hardened.h"

static void write_moved(size_t from_bytes, size_t bytes)
{
    char *block = moved_away(from_bytes, bytes);
    block[from_bytes / 2] = 'x';
    for (int i = 0; i < 10000; i++)
        hak_free(take_some(SPAN_BYTES));
}

TEST(a_write_to_where_a_block_was_that_realloc_moved_is_reported_without_guards)
{
    CHECK_ABORTS(write_moved(SPAN_BYTES, 4 * SPAN_BYTES), "hakmem: use after free: pointer 0x");
    CHECK_ABORTS(write_moved(4 * SPAN_BYTES, SPAN_BYTES), "hakmem: use after free: pointer 0x");
}

TEST(nothing_of_the_content_is_left_where_a_block_was)
{
    static const size_t sizes[][2] = {{SPAN_BYTES, 4 * SPAN_BYTES}, {4 * SPAN_BYTES, SPAN_BYTES}};
    for (int i = 0; i < 2; i++) {
        const char *block = moved_away(sizes[i][0], sizes[i][1]);
        CHECK_BYTES(block, sizes[i][0], 0);
    }
}
