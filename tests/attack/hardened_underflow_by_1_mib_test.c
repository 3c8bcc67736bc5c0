/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_underflow_by_1_mib_test.c - a MiB before a block is written. */
#include "hardened.h"

static void underflow(size_t bytes)
{
    char *block = take_some(bytes);
    for (size_t i = 1; i <= HAK_MIB; i++)
        block[-(ptrdiff_t)i] = 'x';
}

TEST(an_underflow_of_1_mib_before_8_bytes_meets_a_guard)
{
    CHECK_FAULTS(underflow(TINY_BYTES));
}

TEST(an_underflow_of_1_mib_before_4096_bytes_meets_a_guard)
{
    CHECK_FAULTS(underflow(PAGE_BYTES));
}

TEST(an_underflow_of_1_mib_before_256_kib_meets_a_guard)
{
    CHECK_FAULTS(underflow(SPAN_BYTES));
}
