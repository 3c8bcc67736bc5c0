/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_write_after_free_unguarded_test.c - freed large blocks have no guards. */
#define MEMBERS "quarantine+zero"
#include "hardened.h"

TEST(a_write_after_free_is_reported_without_guards)
{
    EACH_SIZE (bytes) {
        CHECK_ABORTS(write_freed(bytes), "hakmem: use after free: pointer 0x");
    }
}
