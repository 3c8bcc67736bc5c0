/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_write_after_free_test.c - a block is written to after it was freed. */
#include "hardened.h"

TEST(a_write_to_8_bytes_after_free_is_stopped)
{
    CHECK_ABORTS(write_freed(TINY_BYTES), "hakmem: use after free: pointer 0x");
    CHECK_ABORTS(write_freed(TINY_BYTES), "written to while it was free\n");
}

TEST(a_write_to_4096_bytes_after_free_is_stopped)
{
    CHECK_ABORTS(write_freed(PAGE_BYTES), "hakmem: use after free: pointer 0x");
    CHECK_ABORTS(write_freed(PAGE_BYTES), "written to while it was free\n");
}

TEST(a_write_to_256_kib_after_free_is_stopped)
{
    CHECK_FAULTS(write_freed(SPAN_BYTES));
}
