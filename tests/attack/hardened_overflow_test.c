/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_overflow_test.c - bytes behind a block are written. */
#include "hardened.h"

static char *overflown(size_t bytes, size_t by_bytes)
{
    char *block = take_some(bytes);
    memset(block, 'x', bytes + by_bytes);
    return block;
}

TEST(an_overflow_is_reported_by_free_and_realloc_and_a_far_one_meets_a_guard)
{
    EACH_SIZE (bytes) {
        for (size_t by_bytes = 1; by_bytes <= 32; by_bytes += 31) {
            CHECK_REPORTS(hak_free(overflown(bytes, by_bytes)), "overflow",
                          "the bytes behind it were overwritten\n");
            CHECK_ABORTS(hak_realloc(overflown(bytes, by_bytes), 2 * bytes),
                         "hakmem: overflow: pointer 0x");
        }
        CHECK_FAULTS(overflown(bytes, HAK_MIB));
    }
}
