/* SPDX-License-Identifier: MIT */
/* tests/attack/fenced_overflow_test.c - a fenced block is written or read beyond its end. */
#include "fenced.h"

static const size_t sizes[] = {8, 16, 48, 4096, 10000, 262144, 5000000};

TEST(the_first_byte_behind_the_end_faults)
{
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
