/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_overflow_by_32_test.c - 32 bytes behind a block are written. */
#include "hardened.h"

static void overflow(size_t bytes)
{
    char *block = take_some(bytes);
    memset(block + bytes, 'x', 32);
    hak_free(block);
}

static void overflow_and_resize(size_t bytes)
{
    char *block = take_some(bytes);
    memset(block + bytes, 'x', 32);
    CHECK(hak_realloc(block, 2 * bytes) == NULL);
}

TEST(an_overflow_of_32_bytes_behind_8_bytes_is_reported_by_free_and_realloc)
{
    CHECK_ABORTS(overflow(TINY_BYTES), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS(overflow_and_resize(TINY_BYTES), "hakmem: overflow: pointer 0x");
}

TEST(an_overflow_of_32_bytes_behind_4096_bytes_is_reported_by_free_and_realloc)
{
    CHECK_ABORTS(overflow(PAGE_BYTES), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS(overflow_and_resize(PAGE_BYTES), "hakmem: overflow: pointer 0x");
}

TEST(an_overflow_of_32_bytes_behind_256_kib_is_reported_by_free_and_realloc)
{
    CHECK_ABORTS(overflow(SPAN_BYTES), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS(overflow_and_resize(SPAN_BYTES), "hakmem: overflow: pointer 0x");
}
