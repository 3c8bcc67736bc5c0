/* SPDX-License-Identifier: MIT */
/* tests/attack/fenced_test.c - a fenced block is written or read beyond its ends, or after it was
 * freed; is freed twice, in the middle, or as what it is not. */
#include "fenced.h"

TEST(the_first_byte_behind_the_end_faults)
{
    static const size_t sizes[] = {8, 16, 48, 4096, 10000, 262144, 5000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i];
        CHECK_FAULTS(write_at(take(bytes), (ptrdiff_t)bytes));
        CHECK_FAULTS(read_at(take(bytes), (ptrdiff_t)bytes));
    }
}

TEST(far_behind_it_too)
{
    CHECK_FAULTS(write_at(take(64), 4096));
    CHECK_FAULTS(write_at(take(64), 1 << 20));
}

TEST(where_alignment_leaves_bytes_free_tells_which_was_overwritten)
{
    CHECK_ABORTS(write_and_free(1, 1), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS(write_and_free(30, 31),
                 "block of 30 bytes, the bytes behind this guarded block were overwritten, first "
                 "at offset 31, allocated by thread ");
    CHECK_ABORTS(write_and_free(4097, 4111), "first at offset 4111, allocated");
    CHECK_FAULTS(write_and_free(4097, 4112));
}

static void write_behind_aligned(void)
{
    char *block = hak_aligned_alloc(65536, 100);
    CHECK(hak_fence_holds(block) && (uintptr_t)block % 65536 == 0);
    write_at(block, 100);
    hak_free(block);
}

TEST(aligned_blocks_are_fenced_and_keep_their_alignment)
{
    CHECK_ABORTS(write_behind_aligned(), "first at offset 100");
    CHECK_FAULTS(write_at(hak_aligned_alloc(65536, 100), (ptrdiff_t)hak_os_page_bytes()));
    CHECK_FAULTS(write_at(hak_aligned_alloc(64, 64), 64));
}

TEST(a_block_of_no_bytes_bears_no_access)
{
    CHECK_EQ(hak_malloc_usable_size(take(0)), 0);
    CHECK_FAULTS(read_at(take(0), 0));
    hak_free(take(0));
    CHECK_ABORTS(hak_free(take_freed(0)), "hakmem: double free");
}

TEST(so_it_is_with_what_calloc_realloc_and_operator_new_give)
{
    CHECK_FAULTS(write_at(hak_calloc(3, 16), 48));
    CHECK_FAULTS(write_at(hak_calloc(3, 1024), 3072));
    CHECK_FAULTS(write_at(hak_realloc(take(16), 32), 32));
    CHECK_FAULTS(write_at(hak_realloc(take(64), 32), 32));
    CHECK_FAULTS(write_at(hak_new(32), 32));
    CHECK_FAULTS(write_at(hak_new_aligned(64, 64), 64));
}

TEST(on_the_blocks_own_page_it_is_told_when_it_is_freed)
{
    CHECK_ABORTS(write_and_free(32, -1), "hakmem: underflow: pointer 0x");
    CHECK_ABORTS(write_and_free(32, -1000), "before this guarded block were overwritten, first at "
                                            "offset -1000, allocated by thread ");
}

TEST(a_block_that_fills_its_pages_stops_it_at_once)
{
    size_t page = hak_os_page_bytes();
    take(16);
    CHECK_FAULTS(write_at(take(page), -1));
    CHECK_FAULTS(read_at(take(page), -1));
}

static char *take_long_freed(size_t bytes)
{
    char *block = take_freed(bytes);
    for (int i = 0; i < 20000; i++)
        hak_free(take(bytes));
    return block;
}

static char *take_resized(size_t bytes, size_t to)
{
    char *block = take(bytes);
    CHECK(hak_realloc(block, to) != block);
    return block;
}

TEST(reading_and_writing_fault)
{
    static const size_t sizes[] = {1, 16, 100, 4096, 262144};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK_FAULTS(read_at(take_freed(sizes[i]), 0));
        CHECK_FAULTS(write_at(take_freed(sizes[i]), (ptrdiff_t)sizes[i] - 1));
    }
}

TEST(after_many_more_were_freed_too)
{
    CHECK_FAULTS(read_at(take_long_freed(100), 0));
    CHECK_ABORTS(hak_free(take_long_freed(100)), "hakmem: double free: pointer 0x");
}

TEST(what_realloc_has_moved_is_freed)
{
    CHECK_FAULTS(read_at(take_resized(100, 101), 0));
    CHECK_FAULTS(read_at(take_resized(100, 99), 0));
    CHECK_FAULTS(read_at(take_resized(1000000, 1000001), 0));
}

TEST(a_pointer_that_another_thread_freed_faults)
{
    char *block = take(100);
    free_by_stranger(block);
    CHECK_FAULTS(read_at(block, 0));
}

TEST(a_second_free_is_reported_with_both_stacks)
{
    CHECK_REPORTS(hak_free(take_freed(24)), "double free",
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
    CHECK_REPORTS(hak_free(never), "invalid free", "no block, nothing is allocated there");
}

TEST(the_form_must_be_the_one_that_allocated_it)
{
    CHECK_ABORTS(hak_delete(take(24)), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(hak_free(hak_new(24)),
                 "allocated by operator new, but freed in another way, allocated by thread ");
    CHECK_ABORTS(hak_delete_array(hak_new(24)),
                 "allocated by operator new, but freed in another way");
    CHECK_ABORTS(hak_realloc(hak_new(24), 48),
                 "allocated by operator new, but freed in another way, allocated by thread ");
    CHECK_ABORTS(hak_realloc(hak_new_array(24), 0),
                 "allocated by operator new[], but freed in another way");
    CHECK_ABORTS(hak_free_sized(take(24), 25), "freed with another size");
    CHECK_ABORTS(hak_delete_aligned(hak_new_aligned(64, 64), 32), "freed with another alignment");
}

TEST(the_right_forms_pass)
{
    hak_free(take(24));
    hak_free(hak_realloc(take(24), 48));
    hak_free_sized(take(24), 24);
    hak_free_aligned_sized(hak_aligned_alloc(64, 100), 64, 100);
    hak_delete(hak_new(24));
    hak_delete_array_sized(hak_new_array(24), 24);
    hak_delete_sized_aligned(hak_new_aligned(64, 64), 64, 64);
    CHECK_EQ(hak_fence_live_count(), 0);
}
