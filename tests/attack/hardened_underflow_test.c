/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_underflow_test.c - bytes before a block are written. */
#include "hardened.h"

static void write_before(char *block, size_t by_bytes)
{
    for (size_t i = 1; i <= by_bytes; i++)
        block[-(ptrdiff_t)i] = 'x';
    hak_free(block);
}

static void underflow(size_t bytes, size_t by_bytes)
{
    for (int i = 0; i < 40; i++)
        write_before(take_inner(bytes), by_bytes);
}

TEST(an_underflow_is_stopped)
{
    CHECK_ABORTS(underflow(TINY_BYTES, 1), "hakmem: underflow: pointer 0x");
    CHECK_ABORTS(underflow(PAGE_BYTES, 1), "hakmem: underflow: pointer 0x");
    CHECK_ABORTS(underflow(TINY_BYTES, 32), "flow: pointer 0x");
    CHECK_ABORTS(underflow(PAGE_BYTES, 32), "flow: pointer 0x");
    CHECK_FAULTS(write_before(take_some(SPAN_BYTES), 1));
    CHECK_FAULTS(write_before(take_some(SPAN_BYTES), 32));
    EACH_SIZE (bytes) {
        CHECK_FAULTS(write_before(take_some(bytes), HAK_MIB));
    }
}
