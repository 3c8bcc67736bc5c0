/* SPDX-License-Identifier: MIT */
/* tests/attack/guarded_overflow_test.c - a guarded block is written or read beyond its end. */
#include "guarded.h"

static void write_at(size_t bytes, size_t at)
{
    take_guarded(bytes)[at] = 0;
}

static void write_into_slack(size_t bytes, size_t at)
{
    char *block = take_guarded(bytes);
    block[at] = 0;
    hak_free(block);
}

TEST(one_byte_beyond_the_slack_faults)
{
    CHECK_FAULTS(write_at(16, 16));
    CHECK_FAULTS(write_at(100, 112));
    CHECK_FAULTS(write_at(4096, 4096));
    CHECK_FAULTS(write_at(10000, 10000));
}

TEST(reading_there_faults_too)
{
    CHECK_FAULTS(((volatile char *)take_guarded(48))[48]);
}

TEST(one_byte_into_the_slack_is_reported_when_the_block_is_freed)
{
    CHECK_ABORTS(write_into_slack(1, 1), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS(write_into_slack(100, 100),
                 "block of 100 bytes, the bytes behind this guarded block were overwritten, "
                 "first at offset 100, allocated by thread ");
    CHECK_ABORTS(write_into_slack(10001, 10001), "hakmem: overflow: pointer 0x");
}
