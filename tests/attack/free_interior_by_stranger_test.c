/* SPDX-License-Identifier: MIT */
/* tests/attack/free_interior_by_stranger_test.c - a stranger frees the inside of a small block. */
#include "attack.h"

static void free_inside(size_t bytes, size_t offset)
{
    free_by_stranger((char *)hak_malloc(bytes) + offset);
}

TEST(the_inside_of_a_small_block_freed_by_a_stranger_is_reported)
{
    CHECK_ABORTS(free_inside(64, 16), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_inside(64, 16), "block of 64 bytes, not the start of a block\n");
    CHECK_ABORTS(free_inside(64, 1), "not the start of a block\n");
    CHECK_ABORTS(free_inside(100000, 65536), "not the start of a block\n");
}
