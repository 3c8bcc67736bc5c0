/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_predictable_order_test.c - blocks are handed out in an order that nobody
 * can tell. */
#define MEMBERS "random"
#include "hardened.h"

/* Two neighbours in the order of time are seldom neighbours in space. */
static void order(size_t bytes)
{
    int neighbours = 0;
    char *before = take_some(bytes);
    size_t gap = hak_malloc_usable_size(before);
    for (int i = 0; i < 200; i++) {
        char *block = take_some(bytes);
        neighbours += block > before && block < before + gap + gap / 2 + 32;
        before = block;
    }
    if (neighbours > 100)
        _exit(3);
}

TEST(the_order_of_blocks_is_random)
{
    CHECK_EXITS(order(TINY_BYTES), 0);
    CHECK_EXITS(order(PAGE_BYTES), 0);
}
