/* SPDX-License-Identifier: MIT */
/* tests/unit/slab/pages_test.c - only pages without a block in use go back, and taking brings them
 * back into the count. */
#include "slab/pages.h"

#include "check.h"
#include "os/os.h"
#include "region/region.h"
#include "span/span_heap.h"

#include <string.h>

static struct slab_owner owner = {.heap_id = 1};
static void *blocks[HAK_SLAB_BLOCKS_MAX];

static struct slab *create(size_t block_bytes, bool is_zero)
{
    static bool is_started;
    if (!is_started) {
        hak_os_start();
        CHECK(hak_region_start());
        is_started = true;
    }
    bool span_is_zero;
    struct span *span =
        hak_span_take(HAK_SUPERSLAB_GRANULES, HAK_SUPERSLAB_GRANULES, &span_is_zero);
    CHECK(span != NULL);
    uint32_t first = hak_span_detach(span).first;
    struct slab *slab = hak_slab_create(hak_class_of(block_bytes), first, is_zero, &owner);
    CHECK(slab != NULL);
    return slab;
}

static size_t leaf_bytes(const struct slab *slab)
{
    return (size_t)1 << slab->leaf_shift;
}

static uint32_t leaf_count(const struct slab *slab)
{
    return (uint32_t)(((size_t)slab->granule_count << HAK_GRANULE_SHIFT) >> slab->leaf_shift);
}

/* The answer by the plain question, block by block. */
static uint64_t dead_by_hand(const struct slab *slab)
{
    uint64_t dead = hak_bit_low_mask(leaf_count(slab)) & ~slab->purged;
    for (uint32_t i = 0; i < slab->block_count; i++) {
        bool is_free = i >= slab->bump || ((slab->words[i / 64] >> (i % 64)) & 1);
        for (uint32_t byte = 0; !is_free && byte < slab->block_bytes; byte++)
            dead &= ~(1ull << (((size_t)i * slab->block_bytes + byte) >> slab->leaf_shift));
    }
    for (uint32_t leaf = 0; leaf < leaf_count(slab) && slab->zero_from <= slab->bump; leaf++)
        if (leaf * leaf_bytes(slab) >= (size_t)slab->bump * slab->block_bytes)
            dead &= ~(1ull << leaf);
    return dead;
}

TEST(a_leaf_is_a_page_or_a_sixty_fourth_of_a_long_slab)
{
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        struct slab *slab = create(hak_size_classes[i].block_bytes, true);
        CHECK(leaf_bytes(slab) >= hak_os_page_bytes());
        CHECK(leaf_count(slab) >= 1 && leaf_count(slab) <= 64);
        CHECK(leaf_count(slab) > 32 || leaf_bytes(slab) == hak_os_page_bytes());
    }
}

TEST(dead_leaves_are_those_without_a_block_in_use_for_every_class)
{
    uint64_t random = 7;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        struct slab *slab = create(hak_size_classes[i].block_bytes, i % 2 == 0);
        uint32_t taken = hak_slab_take(slab, blocks, slab->block_count - slab->block_count / 4);
        CHECK_EQ(hak_slab_dead_leaves(slab).touched, dead_by_hand(slab));
        for (uint32_t j = 0; j < taken; j++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            if ((random >> 40) % 8 != 0)
                hak_slab_give(slab, blocks[j]);
        }
        CHECK_EQ(hak_slab_dead_leaves(slab).touched, dead_by_hand(slab));
    }
}

TEST(purging_keeps_every_byte_in_use_and_takes_all_others)
{
    struct slab *slab = create(48, true);
    uint32_t taken = hak_slab_take(slab, blocks, slab->block_count);
    for (uint32_t i = 0; i < taken; i++)
        memset(blocks[i], (int)(i % 250) + 1, 48);
    for (uint32_t i = 0; i < taken; i++)
        if (i % 700 != 3)
            hak_slab_give(slab, blocks[i]);
    uint64_t dead = hak_slab_dead_leaves(slab).touched;
    CHECK(dead != 0 || taken < 700 || leaf_bytes(slab) > HAK_GRANULE_BYTES / 2);
    CHECK_EQ(hak_slab_purge(slab, hak_slab_dead_leaves(slab)),
             (size_t)hak_bit_count(dead) * leaf_bytes(slab));
    CHECK_EQ(slab->purged, dead);
    CHECK_EQ(hak_slab_dead_leaves(slab).touched, 0);
    for (uint32_t i = 3; i < taken; i += 700)
        for (uint32_t byte = 0; byte < 48; byte++)
            CHECK_EQ(((unsigned char *)blocks[i])[byte], i % 250 + 1);
    for (uint32_t leaf = 0; leaf < leaf_count(slab); leaf++)
        if (dead >> leaf & 1)
            CHECK_EQ(*(unsigned char *)(slab->start + leaf * leaf_bytes(slab)), 0);
}

TEST(pages_in_use_again_no_longer_count_as_purged)
{
    struct slab *slab = create(1024, true);
    uint32_t taken = hak_slab_take(slab, blocks, slab->block_count);
    for (uint32_t i = 1; i < taken; i++)
        hak_slab_give(slab, blocks[i]);
    hak_slab_purge(slab, hak_slab_dead_leaves(slab));
    uint64_t before = slab->purged;
    void *again[HAK_SLAB_BLOCKS_MAX];
    uint32_t count = hak_slab_take(slab, again, taken / 2);
    CHECK_EQ(count, taken / 2);
    for (uint32_t i = 0; i < count; i++) {
        size_t offset = (uintptr_t)again[i] - slab->start;
        CHECK_EQ(slab->purged & hak_slab_leaves_of(slab, offset), 0);
        memset(again[i], 1, 1024);
    }
    CHECK(before == 0 || slab->purged != before);
    CHECK_EQ(hak_slab_dead_leaves(slab).touched, dead_by_hand(slab));
}

TEST(untouched_memory_behind_the_bump_index_is_not_given_back)
{
    struct slab *slab = create(64, true);
    CHECK(hak_slab_take(slab, blocks, 1) == 1);
    CHECK_EQ(hak_slab_dead_leaves(slab).touched, 0);
}

TEST(dirty_memory_behind_the_bump_index_is_given_back)
{
    struct slab *slab = create(64, false);
    CHECK(hak_slab_take(slab, blocks, 1) == 1);
    CHECK_EQ(hak_bit_count(hak_slab_dead_leaves(slab).touched), leaf_count(slab) - 1);
}
