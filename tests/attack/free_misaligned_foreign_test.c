/* SPDX-License-Identifier: MIT */
/* tests/attack/free_misaligned_foreign_test.c - a pointer is freed that no allocator can have
 * given. */
#include "attack.h"

static _Alignas(16) char variable[64];

TEST(a_pointer_that_is_aligned_for_nothing_is_reported)
{
    CHECK_ABORTS(hak_free(variable + 1), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(hak_free(variable + 4), "not aligned as any block is\n");
    CHECK_ABORTS(hak_realloc(variable + 2, 5), "hakmem: invalid realloc: pointer 0x");
    CHECK_EXITS(hak_free(variable), 0); /* it might be another allocator's */
}
