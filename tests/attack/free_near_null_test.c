/* SPDX-License-Identifier: MIT */
/* tests/attack/free_near_null_test.c - small numbers are freed as if they were pointers. */
#include "attack.h"

TEST(a_pointer_near_null_is_reported)
{
    CHECK_ABORTS(hak_free((void *)8),
                 "hakmem: invalid free: pointer 0x8, no block, an address near");
    CHECK_ABORTS(hak_free((void *)1), "hakmem: invalid free: pointer 0x1, ");
    CHECK_ABORTS(hak_free((void *)0xfff0), "an address near NULL\n");
    CHECK_ABORTS(hak_realloc((void *)16, 5), "hakmem: invalid realloc: pointer 0x10, ");
}
