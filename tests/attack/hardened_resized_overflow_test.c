/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_resized_overflow_test.c - bytes behind a large block are written after it
 * was resized. */
#include "hardened.h"
#include "os/os.h"

static char *resized(size_t bytes)
{
    char *block = take_some(SPAN_BYTES);
    memset(block, 'x', SPAN_BYTES);
    return volatile_block(hak_realloc(block, bytes));
}

static char *overflown(size_t bytes)
{
    char *block = resized(bytes);
    memset(block, 'x', bytes + 1);
    return block;
}

/* A canary of 8 bytes at least ends the last page; machines have pages of up to 64 KiB. */
static void overflow_by_a_page(size_t bytes)
{
    char *block = resized(bytes);
    size_t page = hak_os_page_bytes();
    block[hak_align_up(bytes + 8, page)] = 'x';
}

TEST(an_overflow_behind_a_large_block_that_was_resized_is_found)
{
    static const size_t sizes[] = {SPAN_BYTES + PAGE_BYTES + 1, SPAN_BYTES - PAGE_BYTES + 1,
                                   16 * SPAN_BYTES, SPAN_BYTES * 5 / 8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK_REPORTS(hak_free(overflown(sizes[i])), "overflow",
                      "the bytes behind it were overwritten\n");
        CHECK_ABORTS(hak_realloc(overflown(sizes[i]), 2 * sizes[i]),
                     "hakmem: overflow: pointer 0x");
        CHECK_FAULTS(overflow_by_a_page(sizes[i]));
        CHECK_FAULTS(resized(sizes[i])[-1] = 'x');
    }
}
