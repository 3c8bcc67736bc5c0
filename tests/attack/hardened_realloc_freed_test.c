/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_realloc_freed_test.c - a block is resized after it was freed. */
#include "hardened.h"

static void resize_freed(size_t bytes, size_t wished)
{
    void *block = take_some(bytes);
    hak_free(block);
    CHECK(hak_realloc(block, wished) == NULL);
}

static void ask_freed(size_t bytes)
{
    void *block = take_some(bytes);
    hak_free(block);
    CHECK(hak_malloc_usable_size(block) == 0);
}

TEST(a_realloc_of_8_bytes_after_free_is_reported_at_once)
{
    CHECK_ABORTS(resize_freed(TINY_BYTES, TINY_BYTES), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(resize_freed(TINY_BYTES, 2 * TINY_BYTES), ", already free\n");
    CHECK_ABORTS(ask_freed(TINY_BYTES), "hakmem: invalid malloc_usable_size: pointer 0x");
}

TEST(a_realloc_of_4096_bytes_after_free_is_reported_at_once)
{
    CHECK_ABORTS(resize_freed(PAGE_BYTES, PAGE_BYTES), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(resize_freed(PAGE_BYTES, 2 * PAGE_BYTES), ", already free\n");
    CHECK_ABORTS(ask_freed(PAGE_BYTES), "hakmem: invalid malloc_usable_size: pointer 0x");
}

TEST(a_realloc_of_256_kib_after_free_is_reported_at_once)
{
    CHECK_ABORTS(resize_freed(SPAN_BYTES, SPAN_BYTES), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(resize_freed(SPAN_BYTES, 2 * SPAN_BYTES), ", already free\n");
    CHECK_ABORTS(ask_freed(SPAN_BYTES), "hakmem: invalid malloc_usable_size: pointer 0x");
}
