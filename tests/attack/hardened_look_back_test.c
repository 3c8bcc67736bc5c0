/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_look_back_test.c - what is written beyond a block that stays allocated, or
 * to one that was just freed, is found by the next request that no ready block serves. */
#include "hardened.h"

/* Sizes of which no block was taken before, so that none is ready. */
static const size_t kept_sizes[] = {24, 100, 700, 3000, 4096, 20000};
#define OTHER_BYTES ((size_t)1500)

static void write_behind(size_t bytes, size_t by_bytes)
{
    memset(take_some(bytes) + bytes, 'x', by_bytes);
    take_some(OTHER_BYTES);
}

TEST(an_overflow_of_a_block_that_is_kept_is_found_by_another_request)
{
    for (size_t i = 0; i < sizeof kept_sizes / sizeof kept_sizes[0]; i++) {
        CHECK_REPORTS(write_behind(kept_sizes[i], 1), "overflow",
                      "the bytes behind it were overwritten\n");
        CHECK_REPORTS(write_behind(kept_sizes[i], 8), "overflow",
                      "the bytes behind it were overwritten\n");
    }
}

static void write_before(size_t at_least, size_t offset)
{
    size_t bytes = at_least;
    char *block = take_some(bytes);
    while ((uintptr_t)block == hak_slab_at(block)->start) /* a guard page is before it */
        block = take_some(bytes += bytes / 2);
    block[-(ptrdiff_t)offset] = 'x';
    take_some(OTHER_BYTES);
}

TEST(an_underflow_of_a_block_that_is_kept_is_found_by_another_request)
{
    for (size_t i = 0; i < sizeof kept_sizes / sizeof kept_sizes[0]; i++)
        for (size_t offset = 1; offset <= 32; offset += 31)
            CHECK_REPORTS(write_before(kept_sizes[i], offset), "underflow",
                          "the bytes before it were overwritten\n");
}

static void write_to_freed(size_t bytes, size_t at)
{
    char *block = take_some(bytes);
    hak_free(block);
    block[at] = 'x';
    take_some(OTHER_BYTES);
}

TEST(a_write_to_the_block_that_was_freed_last_is_found_by_another_request)
{
    for (size_t i = 0; i < sizeof kept_sizes / sizeof kept_sizes[0]; i++)
        CHECK_REPORTS(write_to_freed(kept_sizes[i], 7), "use after free",
                      "written to while it was free\n");
    CHECK_REPORTS(write_to_freed(3000, 2999), "use after free", "written to while it was free\n");
}

static void *work(void *unused)
{
    for (size_t i = 0; i < 3000; i++) {
        char *block = take_some(16 + i % 50 * 100);
        memset(block, 'x', 16 + i % 50 * 100);
        block = volatile_block(hak_realloc(block, 16 + i % 70 * 100));
        if (i % 3 != 0)
            hak_free(block);
    }
    return unused;
}

TEST(nothing_is_found_where_all_is_well_while_blocks_change_size_and_owner)
{
    in_thread(work, NULL);
    work(NULL);
    CHECK(true);
}
