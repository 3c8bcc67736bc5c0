/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_underflow_by_32_test.c - 32 bytes before a block are written. */
#include "hardened.h"

static void write_before(char *block)
{
    memset(block - 32, 'x', 32);
    hak_free(block);
}

static void underflow(size_t bytes)
{
    for (int i = 0; i < 40; i++)
        write_before(take_inner(bytes));
}

TEST(an_underflow_of_32_bytes_before_8_bytes_is_stopped)
{
    CHECK_ABORTS(underflow(TINY_BYTES), "flow: pointer 0x");
}

TEST(an_underflow_of_32_bytes_before_4096_bytes_is_stopped)
{
    CHECK_ABORTS(underflow(PAGE_BYTES), "flow: pointer 0x");
}

TEST(an_underflow_of_32_bytes_before_256_kib_is_stopped)
{
    CHECK_FAULTS(write_before(take_some(SPAN_BYTES)));
}
