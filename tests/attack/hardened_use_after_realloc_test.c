/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_use_after_realloc_test.c - the old place of a large block is used after
 * realloc moved it. */
#include "hardened.h"

/* Where the block was. */
static char *moved_away(size_t from_bytes, size_t bytes)
{
    char *block = take_some(from_bytes);
    memset(block, 's', from_bytes);
    for (int i = 0; i < 8; i++) /* nothing is free behind it */
        take_some(SPAN_BYTES);
    char *moved = volatile_block(hak_realloc(block, bytes));
    CHECK(moved != block && moved[0] == 's');
    return block;
}

static void check_old_place(size_t from_bytes, size_t bytes)
{
    CHECK_ABORTS(hak_free(moved_away(from_bytes, bytes)), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(hak_free(moved_away(from_bytes, bytes)), ", already free\n");
    CHECK_ABORTS(hak_realloc(moved_away(from_bytes, bytes), 3 * bytes),
                 "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(hak_realloc(moved_away(from_bytes, bytes), 100), ", already free\n");
    CHECK_ABORTS(hak_malloc_usable_size(moved_away(from_bytes, bytes)),
                 "hakmem: invalid malloc_usable_size: pointer 0x");
    CHECK_FAULTS(moved_away(from_bytes, bytes)[0] = 'x');
    CHECK_FAULTS(moved_away(from_bytes, bytes)[from_bytes - 1] = 'x');
    CHECK_FAULTS(CHECK(moved_away(from_bytes, bytes)[from_bytes / 2] == 's'));
}

TEST(the_old_place_of_256_kib_that_grew_to_4_mib_is_dead)
{
    check_old_place(SPAN_BYTES, 16 * SPAN_BYTES);
}

TEST(the_old_place_of_4_mib_that_shrank_to_256_kib_is_dead)
{
    check_old_place(16 * SPAN_BYTES, SPAN_BYTES);
}
