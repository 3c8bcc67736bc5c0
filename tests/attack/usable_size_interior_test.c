/* SPDX-License-Identifier: MIT */
/* tests/attack/usable_size_interior_test.c - the size of the inside of a block is asked. */
#include "attack.h"

static void ask_inside(size_t bytes, size_t offset)
{
    CHECK(hak_malloc_usable_size((char *)hak_malloc(bytes) + offset) == 0);
}

TEST(the_usable_size_of_the_inside_of_a_block_is_reported)
{
    CHECK_ABORTS(ask_inside(LARGE_BYTES, 16), "hakmem: invalid malloc_usable_size: pointer 0x");
    CHECK_ABORTS(ask_inside(LARGE_BYTES, 16), "not the start of the block\n");
    CHECK_ABORTS(ask_inside(64, 8), "block of 64 bytes, not the start of a block\n");
}
