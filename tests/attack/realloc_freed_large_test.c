/* SPDX-License-Identifier: MIT */
/* tests/attack/realloc_freed_large_test.c - a large block is resized after it was freed. */
#include "attack.h"

static void resize_freed(size_t bytes)
{
    void *block = hak_malloc(LARGE_BYTES);
    hak_free(block);
    CHECK(hak_realloc(block, bytes) == NULL);
}

TEST(a_realloc_of_a_freed_large_block_is_reported)
{
    CHECK_ABORTS(resize_freed(2 * LARGE_BYTES), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(resize_freed(2 * LARGE_BYTES), "no block is live there\n");
    CHECK_ABORTS(resize_freed(10), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(resize_freed(0), "hakmem: invalid free: pointer 0x");
}
