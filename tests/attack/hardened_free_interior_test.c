/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_free_interior_test.c - the inside of a block is freed, or resized. */
#include "hardened.h"

static void free_inside(size_t bytes, size_t offset)
{
    hak_free(take_some(bytes) + offset);
}

static void resize_inside(size_t bytes, size_t offset)
{
    CHECK(hak_realloc(take_some(bytes) + offset, 100) == NULL);
}

TEST(the_inside_of_a_block_of_8_bytes_is_reported_at_once)
{
    CHECK_ABORTS(free_inside(TINY_BYTES, 1), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_inside(TINY_BYTES, 16), "not the start of");
    CHECK_ABORTS(resize_inside(TINY_BYTES, 16), "hakmem: invalid realloc: pointer 0x");
}

TEST(the_inside_of_a_block_of_4096_bytes_is_reported_at_once)
{
    CHECK_ABORTS(free_inside(PAGE_BYTES, 1), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_inside(PAGE_BYTES, 16), "not the start of");
    CHECK_ABORTS(resize_inside(PAGE_BYTES, 16), "hakmem: invalid realloc: pointer 0x");
}

TEST(the_inside_of_a_block_of_256_kib_is_reported_at_once)
{
    CHECK_ABORTS(free_inside(SPAN_BYTES, 1), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_inside(SPAN_BYTES, 16), "not the start of");
    CHECK_ABORTS(resize_inside(SPAN_BYTES, 16), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(free_inside(SPAN_BYTES, 100000), "nothing is allocated there\n");
}
