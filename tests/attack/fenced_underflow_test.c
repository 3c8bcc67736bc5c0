/* SPDX-License-Identifier: MIT */
/* tests/attack/fenced_underflow_test.c - a fenced block is written before its start: found when it
 * is freed, and at once where it begins a page. */
#include "fenced.h"

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
