/* SPDX-License-Identifier: MIT */
/* tests/attack/double_free_in_one_bin_test.c - both copies of a block wait in one bin. */
#include "attack.h"

static void free_twice_at_once(void)
{
    others_take(64);
    hak_free(others[1]);
    hak_free(others[1]);
    others_free(FIRST_HALF);
    others_free(SECOND_HALF);
}

TEST(a_small_block_freed_twice_in_a_row_is_reported_when_the_bin_is_flushed)
{
    CHECK_ABORTS(free_twice_at_once(), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_twice_at_once(), ", block of 64 bytes, already free\n");
}
