/* SPDX-License-Identifier: MIT */
/* tests/attack/realloc_interior_test.c - the inside of a block is resized. */
#include "attack.h"

static void resize_inside(size_t bytes, size_t offset)
{
    CHECK(hak_realloc((char *)hak_malloc(bytes) + offset, 2 * bytes) == NULL);
}

TEST(a_realloc_of_the_inside_of_a_block_is_reported)
{
    CHECK_ABORTS(resize_inside(64, 16), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(resize_inside(64, 16), "block of 64 bytes, not the start of a block\n");
    CHECK_ABORTS(resize_inside(LARGE_BYTES, 16), "not the start of the block\n");
    CHECK_ABORTS(resize_inside(LARGE_BYTES, HAK_GRANULE_BYTES * 2), "no block is live there\n");
}
