/* SPDX-License-Identifier: MIT */
/* tests/unit/span/large_group_test.c - large blocks of one group are counted, freed and mended
 * together. */
#include "base/list.h"
#include "check.h"
#include "process/start.h"
#include "region/tag_map.h"
#include "span/span_heap.h"
#include "unit/span/take_large.h"

#define BLOCKS 4u
#define GRANULES_OF(i) (3u + (i)) /* of block i, with room for its varying start */

static struct list_link group;
static void *blocks[BLOCKS];

static struct span *span_at(const void *block)
{
    return hak_owner_read(hak_granule_of(block));
}

/* A group of a few blocks, beside one that is in none. */
static void start_group(void)
{
    CHECK(hak_process_start());
    hak_large_group_start(&group);
    CHECK(take_large(300000, 16, LARGE_ANY) != NULL);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        blocks[i] = take_large((GRANULES_OF(i) - 1) * HAK_GRANULE_BYTES, 16, LARGE_ANY);
        CHECK(blocks[i] != NULL);
        hak_large_join(blocks[i], &group);
    }
}

static void check_group(size_t wanted_count, size_t wanted_granules)
{
    size_t count = 77;
    CHECK_EQ(hak_large_group_bytes(&group, &count), wanted_granules * HAK_GRANULE_BYTES);
    CHECK_EQ(count, wanted_count);
    for (const struct list_link *i = &group; i->next != &group; i = i->next)
        CHECK_EQ(i->next->prev, i);
    CHECK_EQ(group.prev->next, &group);
}

TEST(a_group_has_the_blocks_that_joined_it_until_they_are_freed)
{
    start_group();
    check_group(BLOCKS, 3 + 4 + 5 + 6);
    CHECK_EQ(hak_large_group_of(blocks[1], "test"), &group);
    hak_large_give(blocks[1]);
    check_group(BLOCKS - 1, 3 + 5 + 6);
    size_t others = hak_large_live_count() - (BLOCKS - 1);
    hak_large_give_group(&group);
    check_group(0, 0);
    CHECK_EQ(hak_large_live_count(), others);
    CHECK(hak_span_heap_is_sound());
}

TEST(a_block_of_a_group_that_moves_stays_in_it)
{
    start_group();
    struct span *from = span_at(blocks[2]);
    void *target = take_large(12 * HAK_GRANULE_BYTES, 4096, LARGE_ANY);
    hak_large_succeed(from, span_at(target));
    CHECK_EQ(hak_large_group_of(target, "test"), &group);
    CHECK_EQ(hak_large_group_of(blocks[2], "test"), NULL);
    check_group(BLOCKS, 3 + 4 + 12 + 6);
    hak_large_give(blocks[2]);
    check_group(BLOCKS, 3 + 4 + 12 + 6);
}

TEST(a_live_block_is_known_by_its_start)
{
    start_group();
    CHECK(hak_large_is_block(blocks[0]));
    CHECK(!hak_large_is_block((char *)blocks[0] + 16));
    CHECK(!hak_large_is_block((char *)blocks[0] + 2 * HAK_GRANULE_BYTES));
}

/* What a thread that was stopped leaves of block i: withdrawn, and in the group by one link. */
static void withdraw_half(uint32_t i)
{
    struct span *span = span_at(blocks[i]);
    hak_store_relaxed(&span->user, NULL);
    span->bin_link.prev->next = span->bin_link.next;
    span->bin_link.next->prev = &span->bin_link;
}

TEST(a_group_that_was_left_in_a_change_has_its_live_blocks_and_whole_links_again)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        start_group();
        withdraw_half(i);
        hak_large_group_mend(&group);
        check_group(BLOCKS - 1, 3 + 4 + 5 + 6 - GRANULES_OF(i));
    }
}

TEST(a_block_that_was_withdrawn_leaves_a_mended_group_and_may_leave_it_once_more)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        start_group();
        struct span *span = span_at(blocks[i]);
        hak_store_relaxed(&span->user, NULL);
        hak_large_group_mend(&group);
        check_group(BLOCKS - 1, 3 + 4 + 5 + 6 - GRANULES_OF(i));
        hak_large_leave(span);
        CHECK_EQ(span->group, NULL);
        check_group(BLOCKS - 1, 3 + 4 + 5 + 6 - GRANULES_OF(i));
    }
}
