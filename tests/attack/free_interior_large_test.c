/* SPDX-License-Identifier: MIT */
/* tests/attack/free_interior_large_test.c - the inside of a large block is freed. */
#include "attack.h"

static void free_inside(size_t offset)
{
    hak_free((char *)hak_malloc(LARGE_BYTES) + offset);
}

TEST(the_inside_of_a_large_block_is_reported_at_once)
{
    CHECK_ABORTS(free_inside(16), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_inside(16), "not the start of the block\n");
    CHECK_ABORTS(free_inside(1), "not the start of the block\n");
    CHECK_ABORTS(free_inside(3 * HAK_GRANULE_BYTES), "nothing is allocated there\n");
}
