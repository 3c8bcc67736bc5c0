/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_overflow_by_1_mib_test.c - a MiB behind a block is written. */
#include "hardened.h"

static void overflow(size_t bytes)
{
    char *block = take_some(bytes);
    memset(block + bytes, 'x', HAK_MIB);
}

TEST(an_overflow_of_1_mib_behind_8_bytes_meets_a_guard)
{
    CHECK_FAULTS(overflow(TINY_BYTES));
}

TEST(an_overflow_of_1_mib_behind_4096_bytes_meets_a_guard)
{
    CHECK_FAULTS(overflow(PAGE_BYTES));
}

TEST(an_overflow_of_1_mib_behind_256_kib_meets_a_guard)
{
    CHECK_FAULTS(overflow(SPAN_BYTES));
}
