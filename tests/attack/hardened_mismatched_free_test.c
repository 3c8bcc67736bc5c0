/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_mismatched_free_test.c - a block is freed with another size or alignment,
 * or by the function of another kind. */
#include "hardened.h"

static char *new_some(size_t bytes)
{
    return volatile_block(hak_new(bytes));
}

static char *new_array(size_t bytes)
{
    return volatile_block(hak_new_array(bytes));
}

TEST(a_size_that_is_not_the_right_one_is_reported)
{
    EACH_SIZE (bytes) {
        CHECK_ABORTS(hak_free_sized(take_some(bytes), bytes + 1),
                     "hakmem: mismatched free: pointer 0x");
        CHECK_ABORTS(hak_delete_sized(new_some(bytes), bytes - 1), "freed with another size\n");
        CHECK_ABORTS(hak_delete_array_sized(new_array(bytes), 2 * bytes),
                     "freed with another size\n");
        CHECK_EXITS(hak_free_sized(take_some(bytes), bytes), 0);
        CHECK_EXITS(hak_delete_sized(new_some(bytes), bytes), 0);
        CHECK_EXITS(hak_delete_array_sized(new_array(bytes), bytes), 0);
    }
}

static char *new_aligned(size_t bytes)
{
    return volatile_block(hak_new_aligned(bytes, 64));
}

static char *take_aligned(size_t alignment, size_t bytes)
{
    return volatile_block(hak_aligned_alloc(alignment, bytes));
}

TEST(an_alignment_that_is_not_the_right_one_is_reported)
{
    EACH_SIZE (bytes) {
        CHECK_ABORTS(hak_delete_aligned(new_aligned(bytes), 128),
                     "hakmem: mismatched free: pointer 0x");
        CHECK_ABORTS(hak_delete(new_aligned(bytes)), "freed with another alignment\n");
        CHECK_ABORTS(hak_free_aligned_sized(take_aligned(64, bytes), 32, bytes),
                     "freed with another alignment\n");
        CHECK_EXITS(hak_delete_aligned(new_aligned(bytes), 64), 0);
        CHECK_EXITS(hak_free_aligned_sized(take_aligned(64, bytes), 64, bytes), 0);
        CHECK_EXITS(hak_free_aligned_sized(take_aligned(16, bytes), 16, bytes), 0);
    }
}

TEST(a_block_freed_by_another_kind_of_function_is_reported)
{
    EACH_SIZE (bytes) {
        CHECK_ABORTS(hak_free(new_some(bytes)),
                     "allocated by operator new, but freed in another way\n");
        CHECK_ABORTS(hak_delete_array(new_some(bytes)), "hakmem: mismatched free: pointer 0x");
        CHECK_ABORTS(hak_delete(new_array(bytes)),
                     "allocated by operator new[], but freed in another way\n");
        CHECK_ABORTS(hak_delete(take_some(bytes)),
                     "allocated by malloc, but freed in another way\n");
        CHECK_ABORTS(hak_realloc(new_some(bytes), 2 * bytes),
                     "hakmem: mismatched free: pointer 0x");
    }
}
