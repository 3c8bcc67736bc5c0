/* SPDX-License-Identifier: MIT */
/* tests/attack/guarded_test.c - a guarded block is written or read beyond its ends or after it was
 * freed, freed twice, or in the middle. */
#include "guarded.h"

static void write_at(size_t bytes, size_t at)
{
    take_guarded(bytes)[at] = 0;
}

static void write_into_slack(size_t bytes, size_t at)
{
    char *block = take_guarded(bytes);
    block[at] = 0;
    hak_free(block);
}

TEST(one_byte_beyond_the_slack_faults)
{
    CHECK_FAULTS(write_at(16, 16));
    CHECK_FAULTS(write_at(100, 112));
    CHECK_FAULTS(write_at(4096, 4096));
    CHECK_FAULTS(write_at(10000, 10000));
}

TEST(reading_there_faults_too)
{
    CHECK_FAULTS(((volatile char *)take_guarded(48))[48]);
}

TEST(one_byte_into_the_slack_is_reported_when_the_block_is_freed)
{
    CHECK_ABORTS(write_into_slack(1, 1), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS(write_into_slack(100, 100),
                 "block of 100 bytes, the bytes behind this guarded block were overwritten, "
                 "first at offset 100, allocated by thread ");
    CHECK_ABORTS(write_into_slack(10001, 10001), "hakmem: overflow: pointer 0x");
}

static void write_before(size_t bytes, size_t distance)
{
    char *block = take_guarded(bytes);
    block[-(ptrdiff_t)distance] = 0;
    hak_free(block);
}

TEST(one_byte_before_a_block_is_reported_when_it_is_freed)
{
    CHECK_ABORTS(write_before(16, 1), "hakmem: underflow: pointer 0x");
    CHECK_ABORTS(write_before(1000, 1), "the bytes before this guarded block were overwritten");
}

TEST(one_byte_before_whole_pages_faults)
{
    CHECK_FAULTS(write_before(4096, 1));
    CHECK_FAULTS(write_before(16384, 1));
    CHECK_FAULTS(write_before(16, 4096));
}

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

TEST(a_second_free_is_reported_with_where_the_block_was_allocated_and_freed)
{
    CHECK_REPORTS(hak_free(take_freed(24)), "double free",
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
