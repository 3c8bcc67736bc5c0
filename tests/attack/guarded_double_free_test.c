/* SPDX-License-Identifier: MIT */
/* tests/attack/guarded_double_free_test.c - a guarded block is freed twice, or in the middle. */
#include "guarded.h"

TEST(a_second_free_is_reported_with_where_the_block_was_allocated_and_freed)
{
    CHECK_ABORTS(hak_free(take_freed(24)), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(hak_free(take_freed(24)),
                 "block of 24 bytes, a guarded block, already free, allocated by thread ");
    CHECK_ABORTS(hak_free(take_freed(24)), ", freed by thread ");
}

TEST(so_is_one_by_another_thread)
{
    CHECK_ABORTS(free_by_stranger(take_freed(24)), "hakmem: double free: pointer 0x");
}

TEST(and_one_by_operator_delete)
{
    CHECK_ABORTS(hak_delete_sized(take_freed(24), 24), "hakmem: double free: pointer 0x");
}

TEST(a_pointer_into_the_middle_is_reported)
{
    CHECK_ABORTS(hak_free(take_guarded(64) + 16), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(hak_free(take_guarded(64) + 1), "not the start of a guarded block, allocated by");
    CHECK_ABORTS(hak_free(take_guarded(64) - 16), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(hak_realloc(take_guarded(64) + 16, 80), "hakmem: invalid realloc: pointer 0x");
}
