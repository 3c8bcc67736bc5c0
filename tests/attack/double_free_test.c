/* SPDX-License-Identifier: MIT */
/* tests/attack/double_free_test.c - both copies of a block come home to its slab. */
#include "attack.h"

static void free_twice(void)
{
    others_take(64);
    void *block = others[1];
    hak_free(block);
    others_free(FIRST_HALF); /* the first copy is in the slab now */
    hak_free(block);
    others_free(SECOND_HALF);
}

TEST(a_small_block_freed_twice_is_reported_when_its_second_copy_comes_home)
{
    CHECK_ABORTS(free_twice(), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_twice(), ", block of 64 bytes, already free\n");
}
