/* SPDX-License-Identifier: MIT */
/* tests/attack/free_interior_test.c - the inside of a block is freed, resized, or asked for its
 * size. */
#include "attack.h"

static void free_inside_small(void)
{
    others_take(64);
    hak_free((char *)others[1] + 16);
    others_free(FIRST_HALF);
}

TEST(the_inside_of_a_small_block_is_reported_when_the_bin_is_flushed)
{
    CHECK_REPORTS(free_inside_small(), "invalid free",
                  "block of 64 bytes, not the start of a block\n");
}

static char *inside(size_t bytes, size_t offset)
{
    return volatile_block(hak_malloc(bytes)) + offset;
}

TEST(the_inside_of_a_small_block_freed_by_a_stranger_is_reported)
{
    CHECK_REPORTS(free_by_stranger(inside(64, 16)), "invalid free",
                  "block of 64 bytes, not the start of a block\n");
    CHECK_ABORTS(free_by_stranger(inside(64, 1)), "not the start of a block\n");
    CHECK_ABORTS(free_by_stranger(inside(100000, 65536)), "not the start of a block\n");
}

TEST(the_inside_of_a_large_block_is_reported_at_once)
{
    CHECK_REPORTS(hak_free(inside(LARGE_BYTES, 16)), "invalid free",
                  "not the start of the block\n");
    CHECK_ABORTS(hak_free(inside(LARGE_BYTES, 1)), "not the start of the block\n");
    CHECK_ABORTS(hak_free(inside(LARGE_BYTES, 3 * HAK_GRANULE_BYTES)),
                 "nothing is allocated there: freed before, or never allocated\n");
}

TEST(a_realloc_of_the_inside_of_a_block_is_reported)
{
    CHECK_REPORTS(hak_realloc(inside(64, 16), 128), "invalid realloc",
                  "block of 64 bytes, not the start of a block\n");
    CHECK_ABORTS(hak_realloc(inside(LARGE_BYTES, 16), 2 * LARGE_BYTES),
                 "not the start of the block\n");
    CHECK_ABORTS(hak_realloc(inside(LARGE_BYTES, 2 * HAK_GRANULE_BYTES), 2 * LARGE_BYTES),
                 "no block is live there\n");
}

TEST(the_usable_size_of_the_inside_of_a_block_is_reported)
{
    CHECK_REPORTS(hak_malloc_usable_size(inside(LARGE_BYTES, 16)), "invalid malloc_usable_size",
                  "not the start of the block\n");
    CHECK_ABORTS(hak_malloc_usable_size(inside(64, 8)),
                 "block of 64 bytes, not the start of a block\n");
}
