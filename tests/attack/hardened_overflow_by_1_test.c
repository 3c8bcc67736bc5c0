/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_overflow_by_1_test.c - a byte behind a block is written. */
#include "hardened.h"

static void overflow(size_t bytes)
{
    char *block = take_some(bytes);
    memset(block, 'x', bytes + 1);
    hak_free(block);
}

TEST(an_overflow_of_1_byte_behind_8_bytes_is_reported_by_free)
{
    CHECK_ABORTS(overflow(TINY_BYTES), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS(overflow(TINY_BYTES), "the bytes behind it were overwritten\n");
}

TEST(an_overflow_of_1_byte_behind_4096_bytes_is_reported_by_free)
{
    CHECK_ABORTS(overflow(PAGE_BYTES), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS(overflow(PAGE_BYTES), "the bytes behind it were overwritten\n");
}

TEST(an_overflow_of_1_byte_behind_256_kib_is_reported_by_free)
{
    CHECK_ABORTS(overflow(SPAN_BYTES), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS(overflow(SPAN_BYTES), "the bytes behind it were overwritten\n");
}
