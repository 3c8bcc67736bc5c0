/* SPDX-License-Identifier: MIT */
/* tests/attack/free_never_allocated_test.c - a block is freed that its slab never handed out. */
#include "attack.h"

#include "heap/heap.h"

static void free_the_last_of_the_slab(void)
{
    char *block = hak_malloc(1024);
    const struct slab *slab = hak_slab_at(block);
    free_home_by_stranger((char *)slab->start + (slab->block_count - 1) * slab->block_bytes);
    others_take(1024); /* the first refill collects it */
}

TEST(a_free_of_a_block_that_was_never_handed_out_is_reported)
{
    CHECK_ABORTS(free_the_last_of_the_slab(), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_the_last_of_the_slab(), "block of 1024 bytes, never allocated\n");
}
