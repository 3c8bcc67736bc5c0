/* SPDX-License-Identifier: MIT */
/* tests/attack/guarded_use_after_free_test.c - a guarded block is used after it was freed. */
#include "guarded.h"

TEST(writing_to_a_freed_block_faults)
{
    CHECK_FAULTS(*take_freed(24) = 1);
    CHECK_FAULTS(take_freed(9000)[8999] = 1);
}

TEST(reading_a_freed_block_faults)
{
    CHECK_FAULTS(*(volatile char *)take_freed(24));
}

static void use_later(void)
{
    char *block = take_freed(24);
    for (unsigned i = 1; i < HAK_SAMPLED_GUARD_SLOTS; i++)
        take_freed(24);
    *block = 1;
}

TEST(it_faults_until_all_other_slots_were_used)
{
    CHECK_FAULTS(use_later());
}

TEST(realloc_of_a_freed_block_is_reported)
{
    CHECK_ABORTS(hak_realloc(take_freed(24), 50), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(hak_malloc_usable_size(take_freed(24)), "hakmem: invalid malloc_usable_size: ");
}
