/* SPDX-License-Identifier: MIT */
/* tests/attack/realloc_freed_test.c - a block is resized after it was freed. */
#include "attack.h"

static void resize_freed(size_t bytes)
{
    others_take(64);
    void *block = others[1];
    hak_free(block);
    others_free(FIRST_HALF); /* it is in the slab now */
    CHECK(hak_realloc(block, bytes) != block);
    others_free(SECOND_HALF);
}

/* The only block of its slab: nothing is there any more. */
static void resize_freed_alone(void)
{
    void *block = hak_malloc(100000);
    hak_free(block);
    hak_malloc_trim(0);
    CHECK(hak_realloc(block, 10) == NULL);
}

TEST(a_realloc_of_a_freed_small_block_is_reported_when_its_second_copy_is_flushed)
{
    CHECK_ABORTS(resize_freed(1000), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(resize_freed(1), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(resize_freed(1000000), ", block of 64 bytes, already free\n");
    CHECK_ABORTS(resize_freed(0), "hakmem: double free: pointer 0x");
}

TEST(a_realloc_of_a_freed_block_without_a_slab_is_reported_at_once)
{
    CHECK_REPORTS(resize_freed_alone(), "invalid realloc", "no block is live there\n");
}

static void resize_freed_large(size_t bytes)
{
    void *block = hak_malloc(LARGE_BYTES);
    hak_free(block);
    CHECK(hak_realloc(block, bytes) == NULL);
}

TEST(a_realloc_of_a_freed_large_block_is_reported)
{
    CHECK_REPORTS(resize_freed_large(2 * LARGE_BYTES), "invalid realloc",
                  "no block is live there\n");
    CHECK_ABORTS(resize_freed_large(10), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(resize_freed_large(0), "hakmem: invalid free: pointer 0x");
}
