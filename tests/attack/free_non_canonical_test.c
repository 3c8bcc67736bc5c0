/* SPDX-License-Identifier: MIT */
/* tests/attack/free_non_canonical_test.c - a pointer with overwritten upper bytes is freed. */
#include "attack.h"

static void free_with_upper_byte(void)
{
    hak_free((void *)((uintptr_t)hak_malloc(64) | (uintptr_t)0x41 << 56));
}

TEST(a_pointer_that_no_program_can_have_is_reported)
{
    CHECK_ABORTS(hak_free((void *)0xdeadbeefdeadbee0), "pointer 0xdeadbeefdeadbee0, ");
    CHECK_ABORTS(hak_free((void *)0xdeadbeefdeadbee0), "not a user-space address\n");
    CHECK_ABORTS(hak_free((void *)-16), "not a user-space address\n");
    CHECK_ABORTS(free_with_upper_byte(), "not a user-space address\n");
}
