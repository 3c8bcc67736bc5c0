/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_underflow_by_1_test.c - the byte before a block is written. */
#include "hardened.h"

static void write_before(char *block)
{
    block[-1] = 'x';
    hak_free(block);
}

static void underflow(size_t bytes)
{
    for (int i = 0; i < 40; i++)
        write_before(take_inner(bytes));
}

TEST(an_underflow_of_1_byte_before_8_bytes_is_stopped)
{
    CHECK_ABORTS(underflow(TINY_BYTES), "hakmem: underflow: pointer 0x");
}

TEST(an_underflow_of_1_byte_before_4096_bytes_is_stopped)
{
    CHECK_ABORTS(underflow(PAGE_BYTES), "hakmem: underflow: pointer 0x");
}

TEST(an_underflow_of_1_byte_before_256_kib_is_stopped)
{
    CHECK_FAULTS(write_before(take_some(SPAN_BYTES)));
}
