/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_write_after_free_unguarded_test.c - freed large blocks have no guards. */
#define MEMBERS "quarantine+zero"
#include "hardened.h"

TEST(a_write_to_8_bytes_after_free_is_reported_without_guards)
{
    CHECK_ABORTS(write_freed(TINY_BYTES), "hakmem: use after free: pointer 0x");
}

TEST(a_write_to_4096_bytes_after_free_is_reported_without_guards)
{
    CHECK_ABORTS(write_freed(PAGE_BYTES), "hakmem: use after free: pointer 0x");
}

TEST(a_write_to_256_kib_after_free_is_reported_without_guards)
{
    CHECK_ABORTS(write_freed(SPAN_BYTES), "hakmem: use after free: pointer 0x");
}
