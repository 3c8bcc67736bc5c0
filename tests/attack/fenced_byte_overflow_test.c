/* SPDX-License-Identifier: MIT */
/* tests/attack/fenced_byte_overflow_test.c - with fence_alignment=1 an overflow of any block faults
 * at its first byte. */
#define ALIGNMENT "1"
#include "fenced.h"

TEST(every_size_ends_at_the_page_to_the_byte)
{
    for (size_t bytes = 1; bytes < 40; bytes++) {
        char *block = take(bytes);
        memset(block, 1, bytes);
        CHECK_EQ(((uintptr_t)block + bytes) % hak_os_page_bytes(), 0);
        hak_free(block);
    }
    CHECK_FAULTS(read_at(take(1), 1));
    CHECK_FAULTS(write_at(take(31), 31));
}

TEST(alignments_that_were_asked_for_are_kept)
{
    for (size_t bytes = 9; bytes < 40; bytes++)
        CHECK_EQ((uintptr_t)hak_aligned_alloc(16, bytes) % 16, 0);
    char *block = hak_aligned_alloc(64, 65);
    CHECK_EQ((uintptr_t)block % 64, 0);
    hak_free(block);
}
