/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/order_test.c - blocks in a bin change places, and none is lost. */
#include "heap/order.h"

#include "check.h"
#include "heap/supply.h"
#include "process/start.h"
#include "slabs.h"

static struct slab_owner owner = {.heap_id = 9};
static struct stat_block stats;

/* A slab of 8 KiB blocks of which `used` are taken; the first of them goes to *block. */
static void slab_with(uint32_t used, void **block)
{
    void *blocks[HAK_ORDER_BLOCKS_MOST];
    CHECK(hak_process_start());
    struct slab *slab = make_slab(hak_class_of(8192), &owner, &stats);
    CHECK(slab != NULL);
    CHECK_EQ(hak_slab_take(slab, blocks, used), used);
    *block = blocks[0];
}

TEST(blocks_of_fuller_slabs_come_first_and_equals_stay_in_order)
{
    static const uint32_t used[] = {5, 2, 7, 2, 1, 5};
    static const uint32_t sorted[] = {2, 0, 5, 1, 3, 4};
    void *blocks[6], *before[6];
    for (uint32_t i = 0; i < 6; i++)
        slab_with(used[i], &blocks[i]);
    memcpy(before, blocks, sizeof before);
    hak_order_by_slab_use(blocks, 6);
    for (uint32_t i = 0; i < 6; i++)
        CHECK_EQ(blocks[i], before[sorted[i]]);
}

TEST(a_block_without_a_slab_comes_last)
{
    void *blocks[2];
    slab_with(1, &blocks[1]);
    void *lost = hak_granule_address(hak_granule_of(blocks[1]) | (HAK_SUPERSLAB_GRANULES - 1));
    blocks[0] = lost;
    hak_order_by_slab_use(blocks, 2);
    CHECK_EQ(blocks[1], lost);
}
