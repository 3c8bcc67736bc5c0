/* SPDX-License-Identifier: MIT */
/* tests/attack/fenced_use_after_free_test.c - a fenced block is read or written after it was freed,
 * at once and much later. */
#include "fenced.h"

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
