/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_reuse_at_once_test.c - the address of a freed block is handed out again. */
#include "hardened.h"

static void reuse(size_t bytes)
{
    for (int i = 0; i < 100; i++) {
        char *block = take_some(bytes);
        hak_free(block);
        for (int j = 0; j < 20; j++)
            if (take_some(bytes) == block)
                _exit(3);
    }
}

TEST(an_address_of_8_bytes_is_not_handed_out_again_at_once)
{
    CHECK_EXITS(reuse(TINY_BYTES), 0);
}

TEST(an_address_of_4096_bytes_is_not_handed_out_again_at_once)
{
    CHECK_EXITS(reuse(PAGE_BYTES), 0);
}

TEST(an_address_of_256_kib_is_not_handed_out_again_at_once)
{
    CHECK_EXITS(reuse(SPAN_BYTES), 0);
}
