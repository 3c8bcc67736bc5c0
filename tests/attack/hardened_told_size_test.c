/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_told_size_test.c - sizes are compared, and blocks have no canary: the owner
 * who was told the size of its block (P0901) may free it with any from the one that it asked for to
 * that. */
#define MEMBERS "sized"
#include "hardened.h"

TEST(a_block_of_which_the_size_was_told_is_freed_with_that)
{
    for (size_t bytes = 1; bytes < 300; bytes += 3) {
        struct sized_block sized = hak_new_sized(bytes);
        CHECK(sized.bytes >= bytes);
        hak_delete_sized(sized.block, sized.bytes);
        sized = hak_new_aligned_sized(bytes, 64);
        CHECK(sized.bytes >= bytes);
        hak_delete_sized_aligned(sized.block, sized.bytes, 64);
    }
}

TEST(another_size_is_reported)
{
    CHECK_ABORTS(hak_delete_sized(volatile_block(hak_new(10)), 11), "freed with another size\n");
}
