/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_use_after_free_test.c - a block is read or written after it was freed or
 * moved, and a new one before it is written. */
#include "hardened.h"

static void read_freed(size_t bytes)
{
    char *block = take_some(bytes);
    memset(block, 'x', bytes);
    hak_free(block);
    for (size_t i = 0; i < bytes; i++)
        if (*(volatile char *)(block + i) != 0)
            _exit(3);
}

TEST(nothing_is_left_to_read_after_free)
{
    CHECK_EXITS(read_freed(TINY_BYTES), 0);
    CHECK_EXITS(read_freed(PAGE_BYTES), 0);
    CHECK_FAULTS(read_freed(SPAN_BYTES));
}

TEST(a_write_after_free_is_stopped)
{
    CHECK_REPORTS(write_freed(TINY_BYTES), "use after free", "written to while it was free\n");
    CHECK_REPORTS(write_freed(PAGE_BYTES), "use after free", "written to while it was free\n");
    CHECK_FAULTS(write_freed(SPAN_BYTES));
}

static void read_new(size_t bytes)
{
    char *blocks[40];
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 40; i++) {
            blocks[i] = take_some(bytes);
            for (size_t at = 0; at < bytes; at++)
                if (*(volatile char *)(blocks[i] + at) != 0)
                    _exit(3);
            memset(blocks[i], 'x', bytes);
        }
        for (int i = 0; i < 40; i++)
            hak_free(blocks[i]);
    }
}

TEST(a_new_block_reads_as_zero)
{
    EACH_SIZE (bytes) {
        CHECK_EXITS(read_new(bytes), 0);
    }
}

static void check_old_place(size_t from_bytes, size_t bytes)
{
    CHECK_REPORTS(hak_free(moved_away(from_bytes, bytes)), "double free", ", already free\n");
    CHECK_ABORTS(hak_realloc(moved_away(from_bytes, bytes), 3 * bytes),
                 "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(hak_realloc(moved_away(from_bytes, bytes), 100), ", already free\n");
    CHECK_ABORTS(hak_malloc_usable_size(moved_away(from_bytes, bytes)),
                 "hakmem: invalid malloc_usable_size: pointer 0x");
    CHECK_FAULTS(moved_away(from_bytes, bytes)[0] = 'x');
    CHECK_FAULTS(moved_away(from_bytes, bytes)[from_bytes - 1] = 'x');
    CHECK_FAULTS(CHECK(moved_away(from_bytes, bytes)[from_bytes / 2] == 's'));
}

TEST(the_old_place_of_a_block_that_realloc_moved_is_dead)
{
    check_old_place(SPAN_BYTES, 16 * SPAN_BYTES);
    check_old_place(16 * SPAN_BYTES, SPAN_BYTES);
}
