/* SPDX-License-Identifier: MIT */
/* tests/attack/guarded_underflow_test.c - a guarded block is written before its start. */
#include "guarded.h"

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
