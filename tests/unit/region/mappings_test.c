/* SPDX-License-Identifier: MIT */
/* tests/unit/region/mappings_test.c - the mappings that hakmem causes stay within their share, and
 * what would need more does without. */
#include "process/reclaim.h"
#include "region/mappings.h"

#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "heap/census.h"
#include "os/os.h"
#include "os/os_huge.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "region/region.h"
#include "span/span_move.h"

TEST(half_of_what_the_kernel_allows_may_be_taken)
{
    CHECK_EQ(hak_mappings_most(), hak_os_mappings_most() / 100 * 50);
    CHECK_EQ(hak_mappings_count(), 0);
}

TEST(what_is_taken_and_given_is_counted_and_bounded)
{
    uint32_t most = hak_mappings_most();
    CHECK(hak_mappings_take(most - 2));
    CHECK(!hak_mappings_take(3));
    CHECK_EQ(hak_mappings_count(), most - 2);
    CHECK(hak_mappings_take(2));
    CHECK(!hak_mappings_take(1));
    hak_mappings_give(most);
    CHECK_EQ(hak_mappings_count(), 0);
}

TEST(advice_to_a_superslab_counts_once)
{
    CHECK(hak_mappings_admit_advice(0));
    CHECK(hak_mappings_admit_advice(HAK_SUPERSLAB_GRANULES - 1));
    CHECK_EQ(hak_mappings_count(), 2);
    CHECK(hak_mappings_admit_advice(HAK_SUPERSLAB_GRANULES));
    CHECK_EQ(hak_mappings_count(), 4);
    hak_store_relaxed(&hak_policy.mapping_percent, 0);
    CHECK(hak_mappings_admit_advice(0));
    CHECK(!hak_mappings_admit_advice(5 * HAK_SUPERSLAB_GRANULES));
    CHECK_EQ(hak_mappings_count(), 4);
}

TEST(advice_to_a_superslab_may_divide_what_lies_in_it)
{
    uint32_t first = 20 * HAK_SUPERSLAB_GRANULES, count = HAK_SUPERSLAB_GRANULES;
    CHECK(!hak_mappings_are_divided(first - count, 3 * count));
    CHECK(hak_mappings_admit_advice(first));
    CHECK(hak_mappings_are_divided(first, 1));
    CHECK(hak_mappings_are_divided(first - 1, 2));
    CHECK(hak_mappings_are_divided(first + count - 1, 1));
    CHECK(!hak_mappings_are_divided(first - 1, 1));
    CHECK(!hak_mappings_are_divided(first + count, 1));
    uint32_t small = HAK_SMALL_PAGES_BYTES >> HAK_GRANULE_SHIFT;
    CHECK(hak_mappings_are_divided(small - 1, 2));
    CHECK(!hak_mappings_are_divided(small - 1, 1));
    CHECK(!hak_mappings_are_divided(small, 1));
}

TEST(the_last_superslab_of_the_window_can_be_advised)
{
    CHECK(hak_mappings_admit_advice((HAK_WINDOW_BYTES_MAX >> HAK_GRANULE_SHIFT) - 1));
    CHECK_EQ(hak_mappings_count(), 2);
}

/* A block grown by moves, beside blocks that keep it from growing in place. */
static unsigned char *grow_by_moves(size_t bytes)
{
    unsigned char *block = hak_malloc(2 * HAK_MIB);
    memset(block, 5, 2 * HAK_MIB);
    for (size_t size = 4 * HAK_MIB; size <= bytes; size *= 2) {
        CHECK(hak_malloc(HAK_MIB) != NULL);
        block = hak_realloc(block, size);
        CHECK(block != NULL);
    }
    CHECK_EQ(block[0] + block[2 * HAK_MIB - 1], 10);
    return block;
}

TEST(moved_pages_are_counted_while_they_stand_where_they_were_moved)
{
    unsigned char *block = grow_by_moves(64 * HAK_MIB);
    if (hak_span_piece_count() == 0)
        SKIP("this kernel does not move pages");
    CHECK(hak_mappings_count() >= 3 * hak_span_piece_count());
    uint32_t with_block = hak_mappings_count();
    uint32_t pieces = hak_span_piece_count();
    hak_free(block);
    hak_reclaim_purge_all();
    CHECK(hak_span_piece_count() < pieces);
    CHECK(hak_mappings_count() <= with_block - 3 * (pieces - hak_span_piece_count()));
}

TEST(without_room_for_mappings_blocks_are_copied_instead)
{
    hak_store_relaxed(&hak_policy.mapping_percent, 0);
    hak_free(grow_by_moves(64 * HAK_MIB));
    CHECK_EQ(hak_span_piece_count(), 0);
    CHECK_EQ(hak_mappings_count(), 0);
}

static void use_small_blocks(void)
{
    static void *blocks[20000];
    hak_store_relaxed(&hak_policy.huge_heap_superslabs, 0);
    hak_store_relaxed(&hak_policy.huge_class_bytes, 0);
    for (int i = 0; i < 20000; i++) {
        blocks[i] = hak_malloc(1000);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, 1000);
    }
    for (int i = 0; i < 20000; i++)
        if (i % 1000 != 0)
            hak_free(blocks[i]);
    hak_thread_flush();
    hak_reclaim_relieve();
}

static uint64_t asked_count(void)
{
    return hak_census_counter(HAK_STAT_huge_superslabs);
}

TEST(superslabs_for_which_huge_pages_are_asked_are_counted)
{
    if (hak_os_huge_pages() == HUGE_NEVER)
        SKIP("this kernel has no huge pages");
    use_small_blocks();
    if (asked_count() == 0)
        SKIP("huge pages come unasked");
    CHECK(hak_mappings_count() >= 2 * asked_count());
}

TEST(without_room_for_mappings_huge_pages_are_not_asked_for)
{
    hak_store_relaxed(&hak_policy.mapping_percent, 0);
    use_small_blocks();
    CHECK_EQ(asked_count(), 0);
    CHECK_EQ(hak_mappings_count(), 0);
}
