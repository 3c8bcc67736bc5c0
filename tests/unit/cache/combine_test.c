/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/combine_test.c - remote frees are gathered, and published in time. */
#include "cache/combine.h"
#include "cache/lifecycle.h"
#include "cache/supply.h"
#include "check.h"
#include "slab/remote.h"

static struct slab_owner owner = {.heap_id = 5};
static struct stat_block stats;
static struct combine combine;
static void *blocks[HAK_SLAB_BLOCKS_MAX];

/* A slab of which all blocks are out, in blocks[]. */
static struct slab *slab_of(size_t bytes)
{
    CHECK(hak_process_start());
    struct slab *slab = hak_supply_slab(hak_class_of(bytes), &owner, &stats);
    CHECK(slab != NULL);
    CHECK_EQ(hak_slab_take(slab, blocks, HAK_SLAB_BLOCKS_MAX), slab->block_count);
    return slab;
}

static uint32_t remote_count(struct slab *slab)
{
    return hak_load_relaxed(&slab->remote_count);
}

static uint64_t counted(enum hak_stat stat)
{
    return hak_load_relaxed(&stats.counters[stat]);
}

TEST(neighbours_travel_in_one_publication)
{
    struct slab *slab = slab_of(16);
    hak_combine_add(&combine, slab, blocks[0], &stats);
    hak_combine_add(&combine, slab, blocks[2], &stats);
    hak_combine_add(&combine, slab, blocks[1], &stats);
    CHECK_EQ(remote_count(slab), 0);
    CHECK_EQ(combine.held_bytes, 48);
    hak_combine_publish_all(&combine, &stats);
    CHECK_EQ(remote_count(slab), 3);
    CHECK_EQ(combine.held_bytes, 0);
    CHECK_EQ(counted(HAK_STAT_remote_blocks), 3);
    CHECK_EQ(counted(HAK_STAT_remote_publishes), 1);
    CHECK_EQ(hak_pending_take_all(&owner), slab);
    hak_combine_publish_all(&combine, &stats);
    CHECK_EQ(counted(HAK_STAT_remote_publishes), 1);
}

/* What was not joined must have changed nothing. */
static bool joins(const struct slab *slab, const void *block)
{
    uint32_t held_bytes = combine.held_bytes;
    uint64_t blocks_before = counted(HAK_STAT_remote_blocks);
    bool is_joined = hak_combine_join(&combine, slab, block, &stats);
    CHECK_EQ(combine.held_bytes, held_bytes + (is_joined ? slab->block_bytes : 0));
    CHECK_EQ(counted(HAK_STAT_remote_blocks), blocks_before + is_joined);
    return is_joined;
}

TEST(a_block_joins_only_those_of_its_word_that_wait_for_more)
{
    if (HAK_TINY)
        SKIP("its table has no room for a whole word");
    struct slab *slab = slab_of(16);
    CHECK(!joins(slab, blocks[0])); /* nobody is there */
    hak_combine_add(&combine, slab, blocks[0], &stats);
    CHECK(!joins(slab, blocks[0]));
    CHECK(!joins(slab, blocks[64]));
    CHECK(!joins(slab, (char *)blocks[1] + 8));
    for (uint32_t i = 1; i < 63; i++)
        CHECK(joins(slab, blocks[i]));
    CHECK(!joins(slab, blocks[5]));
    CHECK(!joins(slab, blocks[63])); /* it completes the word */
    CHECK_EQ(remote_count(slab), 0);
    hak_combine_add(&combine, slab, blocks[63], &stats);
    CHECK_EQ(remote_count(slab), 64);
    CHECK(!joins(slab, blocks[0]));
    CHECK_EQ(combine.held_bytes, 0);
}

TEST(a_block_does_not_join_beyond_the_bound)
{
    if (HAK_TINY)
        SKIP("one such block is beyond its bound");
    struct slab *slab = slab_of(HAK_COMBINE_BLOCK_BYTES_MAX);
    hak_combine_add(&combine, slab, blocks[0], &stats);
    for (uint32_t i = 1; combine.held_bytes + slab->block_bytes <= HAK_COMBINE_BYTES &&
                         i + 1 < hak_least(slab->block_count, 64);
         i++)
        CHECK(joins(slab, blocks[i]));
    combine.held_bytes = HAK_COMBINE_BYTES;
    CHECK(!joins(slab, blocks[hak_least(slab->block_count, 64) - 2]));
}

TEST(a_word_that_is_complete_is_published_at_once)
{
    struct slab *slab = slab_of(8);
    uint32_t count = (uint32_t)hak_least(64, slab->block_count);
    for (uint32_t i = 0; i + 1 < count; i++)
        hak_combine_add(&combine, slab, blocks[i], &stats);
    CHECK(remote_count(slab) < count);
    hak_combine_add(&combine, slab, blocks[count - 1], &stats);
    CHECK_EQ(remote_count(slab), count);
    CHECK_EQ(combine.held_bytes, 0);
}

TEST(the_last_word_of_a_slab_is_complete_with_fewer_blocks)
{
    if (HAK_TINY)
        SKIP("a tiny slab has one word");
    struct slab *slab = slab_of(80);
    uint32_t first = slab->block_count / 64 * 64;
    CHECK(first > 0 && first < slab->block_count);
    for (uint32_t i = first; i < slab->block_count; i++) {
        CHECK_EQ(remote_count(slab), 0);
        hak_combine_add(&combine, slab, blocks[i], &stats);
    }
    CHECK_EQ(remote_count(slab), slab->block_count - first);
    CHECK_EQ(combine.held_bytes, 0);
}

TEST(what_is_held_stays_within_its_bound)
{
    uint32_t published = 0;
    for (uint32_t round = 0; round < 8; round++) {
        struct slab *slab = slab_of(1024);
        for (uint32_t i = 0; i < slab->block_count; i += 2) {
            hak_combine_add(&combine, slab, blocks[i], &stats);
            CHECK(combine.held_bytes <= HAK_COMBINE_BYTES);
        }
        published += remote_count(slab);
    }
    CHECK(published > 0);
}

TEST(entries_that_collide_push_each_other_out_and_lose_nothing)
{
    static struct slab *slabs[200];
    for (uint32_t i = 0; i < 200; i++) {
        slabs[i] = slab_of(128);
        hak_combine_add(&combine, slabs[i], blocks[i % slabs[i]->block_count], &stats);
    }
    hak_combine_publish_all(&combine, &stats);
    for (uint32_t i = 0; i < 200; i++)
        CHECK_EQ(remote_count(slabs[i]), 1);
    CHECK_EQ(combine.held_bytes, 0);
}

TEST(words_of_one_slab_that_share_an_entry_are_kept_apart)
{
    struct slab *slab = slab_of(8);
    if (slab->word_count <= HAK_COMBINE_ENTRIES)
        SKIP("no two words of a slab share an entry");
    hak_combine_add(&combine, slab, blocks[3], &stats);
    hak_combine_add(&combine, slab, blocks[HAK_COMBINE_ENTRIES * 64 + 5], &stats);
    CHECK_EQ(remote_count(slab), 1);
    hak_combine_publish_all(&combine, &stats);
    CHECK_EQ(hak_slab_remote_words(slab)[0], 1u << 3);
    CHECK_EQ(hak_slab_remote_words(slab)[HAK_COMBINE_ENTRIES], 1u << 5);
}

TEST(large_blocks_are_published_at_once)
{
    struct slab *slab = slab_of(4096);
    hak_combine_add(&combine, slab, blocks[1], &stats);
    CHECK_EQ(remote_count(slab), 1);
    CHECK_EQ(combine.held_bytes, 0);
}

TEST(without_a_table_a_block_is_published_at_once)
{
    struct slab *slab = slab_of(16);
    hak_combine_bypass(slab, blocks[1]);
    CHECK_EQ(remote_count(slab), 1);
    CHECK_EQ(hak_pending_take_all(&owner), slab);
    bool is_done;
    CHECK_EQ(hak_remote_collect(slab, &is_done), 1);
    CHECK_EQ(hak_slab_take(slab, blocks, 1), 1);
    CHECK_EQ((uintptr_t)blocks[0], slab->start + 16);
}

TEST(a_block_freed_twice_by_one_thread_is_a_double_free)
{
    struct slab *slab = slab_of(16);
    hak_combine_add(&combine, slab, blocks[0], &stats);
    CHECK_ABORTS(hak_combine_add(&combine, slab, blocks[0], &stats), "double free");
    CHECK_ABORTS(hak_combine_add(&combine, slab, blocks[0], &stats), "freed by this thread");
}

TEST(the_inside_of_a_block_is_an_invalid_free)
{
    struct slab *slab = slab_of(64);
    CHECK_ABORTS(hak_combine_add(&combine, slab, (char *)blocks[0] + 16, &stats), "invalid free");
    CHECK_ABORTS(hak_combine_bypass(slab, (char *)blocks[0] + 16), "not the start of a block");
}

TEST(a_slab_that_was_retired_under_a_free_is_a_double_free)
{
    struct slab *slab = slab_of(64);
    hak_combine_add(&combine, slab, blocks[0], &stats);
    hak_slab_give(slab, blocks[0]); /* the second free, by the owner */
    for (uint32_t i = 1; i < slab->block_count; i++)
        hak_slab_give(slab, blocks[i]);
    hak_supply_retire(slab);
    CHECK_EQ(hak_supply_slab(hak_class_of(64), &owner, &stats), slab);
    CHECK_ABORTS(hak_combine_publish_all(&combine, &stats), "its slab was retired");
}
