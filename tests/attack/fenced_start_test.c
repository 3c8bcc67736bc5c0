/* SPDX-License-Identifier: MIT */
/* tests/attack/fenced_start_test.c - with fence_side=start an underflow faults at its first
 * byte, and an overflow is told when the block is freed. */
#define SIDE "start"
#include "fenced.h"

TEST(the_byte_before_the_start_faults)
{
    CHECK_FAULTS(write_at(take(24), -1));
    CHECK_FAULTS(read_at(take(100000), -1));
    CHECK_FAULTS(read_at(hak_aligned_alloc(65536, 24), -1));
}

TEST(an_overflow_is_reported_with_its_offset)
{
    CHECK_ABORTS(write_and_free(24, 24), "first at offset 24, allocated by thread ");
    CHECK_ABORTS(write_and_free(24, 2000), "first at offset 2000, allocated by thread ");
}
