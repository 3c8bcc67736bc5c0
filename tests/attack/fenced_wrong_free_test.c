/* SPDX-License-Identifier: MIT */
/* tests/attack/fenced_wrong_free_test.c - a fenced block is freed twice, in the middle, or as what
 * it is not. */
#include "fenced.h"

TEST(a_second_free_is_reported_with_both_stacks)
{
    CHECK_ABORTS(hak_free(take_freed(24)), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(hak_free(take_freed(24)),
                 "block of 24 bytes, a guarded block, already free, allocated by thread ");
    CHECK_ABORTS(hak_free(take_freed(24)), ", freed by thread ");
    CHECK_ABORTS(free_by_stranger(take_freed(24)), "hakmem: double free: pointer 0x");
}

TEST(so_is_realloc_of_a_freed_block_and_asking_for_its_size)
{
    CHECK_ABORTS(hak_realloc(take_freed(24), 48), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(hak_malloc_usable_size(take_freed(24)), "hakmem: invalid malloc_usable_size:");
}

TEST(a_pointer_into_the_middle_is_reported)
{
    CHECK_ABORTS(hak_free(take(64) + 16), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(hak_free(take(64) + 1), "not the start of a guarded block, allocated by");
    CHECK_ABORTS(hak_free(take(64) - 16), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(hak_realloc(take(100000) + 4096, 80), "hakmem: invalid realloc: pointer 0x");
}

TEST(an_address_where_no_block_ever_was_is_reported)
{
    take(64);
    char *never = (char *)hak_region.fence_start + hak_region.fence_bytes / 2;
    CHECK_ABORTS(hak_free(never), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(hak_free(never), "no block, nothing is allocated there");
}

TEST(the_form_must_be_the_one_that_allocated_it)
{
    CHECK_ABORTS(hak_delete(take(24)), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(hak_free(hak_new(24)),
                 "allocated by operator new, but freed in another way, allocated by thread ");
    CHECK_ABORTS(hak_delete_array(hak_new(24)),
                 "allocated by operator new, but freed in another way");
    CHECK_ABORTS(hak_free_sized(take(24), 25), "freed with another size");
    CHECK_ABORTS(hak_delete_aligned(hak_new_aligned(64, 64), 32), "freed with another alignment");
}

TEST(the_right_forms_pass)
{
    hak_free(take(24));
    hak_free_sized(take(24), 24);
    hak_free_aligned_sized(hak_aligned_alloc(64, 100), 64, 100);
    hak_delete(hak_new(24));
    hak_delete_array_sized(hak_new_array(24), 24);
    hak_delete_sized_aligned(hak_new_aligned(64, 64), 64, 64);
    CHECK_EQ(hak_fence_live_count(), 0);
}
