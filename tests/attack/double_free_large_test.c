/* SPDX-License-Identifier: MIT */
/* tests/attack/double_free_large_test.c - a large block is freed twice. */
#include "attack.h"

static void free_twice(void)
{
    void *block = hak_malloc(LARGE_BYTES);
    hak_free(block);
    hak_free(block);
}

TEST(a_large_block_freed_twice_is_reported_at_once)
{
    CHECK_ABORTS(free_twice(), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_twice(), "nothing is allocated there\n");
}
