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

static uint32_t waiting_count(void)
{
    return hak_magazine_count(&combine.magazine, &combine.waiting);
}

TEST(blocks_that_wait_are_sorted_all_at_once)
{
    struct slab *slab = slab_of(64);
    hak_combine_start(&combine);
    CHECK(!hak_combine_sort(&combine, &stats)); /* nothing waits */
    for (uint32_t i = 0; i < HAK_COMBINE_WAITING; i++)
        CHECK(hak_combine_wait(&combine, blocks[i * 2]));
    CHECK(!hak_combine_wait(&combine, blocks[1]));
    CHECK_EQ(counted(HAK_STAT_remote_blocks), 0);
    CHECK(hak_combine_sort(&combine, &stats));
    CHECK_EQ(waiting_count(), 0);
    CHECK_EQ(counted(HAK_STAT_remote_blocks), HAK_COMBINE_WAITING);
    CHECK_EQ(combine.held_bytes + remote_count(slab) * 64u, HAK_COMBINE_WAITING * 64u);
    CHECK(hak_combine_wait(&combine, blocks[1]));
    hak_combine_publish_all(&combine, &stats);
    CHECK_EQ(waiting_count(), 0);
    CHECK_EQ(remote_count(slab), HAK_COMBINE_WAITING + 1);
}

TEST(blocks_that_wait_go_each_to_its_slab_and_its_word)
{
    struct slab *small = slab_of(16);
    void *some[] = {blocks[3], blocks[5], blocks[small->block_count - 1]};
    struct slab *others = slab_of(48);
    hak_combine_start(&combine);
    for (uint32_t i = 0; i < 3; i++) {
        if (!hak_combine_wait(&combine, some[i])) {
            hak_combine_sort(&combine, &stats);
            CHECK(hak_combine_wait(&combine, some[i]));
        }
        hak_combine_sort(&combine, &stats);
        CHECK(hak_combine_wait(&combine, blocks[i]));
    }
    hak_combine_publish_all(&combine, &stats);
    CHECK_EQ(hak_slab_remote_words(others)[0], 7);
    CHECK_EQ(hak_slab_remote_words(small)[0] & 0x28, 0x28);
    uint32_t last = small->block_count - 1;
    CHECK((hak_slab_remote_words(small)[last / 64] >> (last % 64) & 1) != 0);
    CHECK_EQ(remote_count(small) + remote_count(others), 6);
}

/* By its distance alone it would be one more block of the last word before. */
TEST(a_block_behind_the_end_of_a_slab_is_not_taken_for_one_of_it)
{
    if (HAK_TINY)
        SKIP("the last word of a tiny slab is not followed by another one's");
    struct slab *first = slab_of(80);
    void *last = blocks[first->block_count - 1];
    uint32_t beyond = first->block_count + 1; /* index in the same word */
    CHECK(beyond % 64 > 1);
    struct slab *second = slab_of(16);
    size_t offset = first->start + (size_t)beyond * 80 - second->start;
    CHECK_EQ(offset % 16, 0);
    CHECK(offset < second->block_count * (size_t)16);
    hak_combine_start(&combine);
    CHECK(hak_combine_wait(&combine, last));
    CHECK(hak_combine_wait(&combine, (void *)(second->start + offset)));
    hak_combine_publish_all(&combine, &stats);
    CHECK_EQ(remote_count(first), 1);
    CHECK_EQ(remote_count(second), 1);
}

TEST(misuse_of_blocks_that_wait_is_found_when_they_are_sorted)
{
    struct slab *slab = slab_of(64);
    hak_combine_start(&combine);
    CHECK(hak_combine_wait(&combine, blocks[0]));
    CHECK(hak_combine_wait(&combine, blocks[0]));
    CHECK_ABORTS(hak_combine_sort(&combine, &stats), "already freed by this thread");
    hak_combine_start(&combine);
    hak_combine_add(&combine, slab, blocks[0], &stats);
    CHECK(hak_combine_wait(&combine, blocks[0]));
    CHECK_ABORTS(hak_combine_sort(&combine, &stats), "already freed by this thread");
    hak_combine_start(&combine);
    CHECK(hak_combine_wait(&combine, (char *)blocks[1] + 16));
    CHECK_ABORTS(hak_combine_sort(&combine, &stats), "not the start of a block");
    hak_combine_start(&combine);
    CHECK(hak_combine_wait(&combine, blocks[1]));
    for (uint32_t i = 0; i < slab->block_count; i++)
        hak_slab_give(slab, blocks[i]); /* the second free of blocks[1], by the owner */
    hak_supply_retire(slab);
    CHECK_ABORTS(hak_combine_sort(&combine, &stats), "its slab is gone");
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
    struct slab *slab = slab_of(2 * HAK_COMBINE_BLOCK_BYTES_MAX);
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
