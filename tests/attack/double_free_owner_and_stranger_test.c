/* SPDX-License-Identifier: MIT */
/* tests/attack/double_free_owner_and_stranger_test.c - the owner of a block and a stranger both
 * free it. */
#include "attack.h"

static void free_both(void)
{
    others_take(64);
    void *block = others[1];
    hak_free(block);
    others_free(FIRST_HALF); /* the owner's copy is in the slab now */
    free_home_by_stranger(block);
    others_take(64); /* refills collect the stranger's */
}

TEST(a_block_freed_by_its_owner_and_a_stranger_is_reported_when_they_meet)
{
    CHECK_ABORTS(free_both(), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_both(), ", block of 64 bytes, already free\n");
}
