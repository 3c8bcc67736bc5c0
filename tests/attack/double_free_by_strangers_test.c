/* SPDX-License-Identifier: MIT */
/* tests/attack/double_free_by_strangers_test.c - two threads free a block of a third. */
#include "attack.h"

static void free_by_two_strangers(size_t bytes)
{
    void *block = hak_malloc(bytes);
    free_home_by_stranger(block);
    free_home_by_stranger(block);
}

TEST(a_block_freed_by_two_other_threads_is_reported_by_the_second)
{
    CHECK_ABORTS(free_by_two_strangers(64), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_by_two_strangers(64), "block of 64 bytes, already free\n");
}

TEST(so_is_one_whose_slab_is_gone_by_then)
{
    CHECK_ABORTS(free_by_two_strangers(32768), "nothing is allocated there\n");
}
