/* SPDX-License-Identifier: MIT */
/* tests/attack/free_interior_by_owner_test.c - the owner frees the inside of a small block. */
#include "attack.h"

static void free_inside(void)
{
    others_take(64);
    hak_free((char *)others[1] + 16);
    others_free(FIRST_HALF);
}

TEST(the_inside_of_a_small_block_is_reported_when_the_bin_is_flushed)
{
    CHECK_ABORTS(free_inside(), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_inside(), "block of 64 bytes, not the start of a block\n");
}
