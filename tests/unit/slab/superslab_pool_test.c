/* SPDX-License-Identifier: MIT */
/* tests/unit/slab/superslab_pool_test.c - granules leave superslabs and come back. */
#include "base/bits.h"
#include "check.h"
#include "faults.h"
#include "misuse/harden.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "region/mappings.h"
#include "slab/superslab_pool.h"
#include "stats/counters.h"

#include <time.h>

#define ALL HAK_SUPERSLAB_GRANULES

/* Adds a fresh superslab to the pool; returns its first granule. */
static uint32_t superslab_add(void)
{
    CHECK(hak_process_start());
    struct granule_range range = hak_region_grow(ALL);
    CHECK(range.count >= ALL);
    hak_pool_add(range.first, PARTITION_ORDINARY, true, PAGES_SMALL);
    return range.first;
}

static struct pool_granules take(uint32_t count)
{
    struct pool_granules granules = hak_pool_take(count, 1, PARTITION_ORDINARY);
    CHECK_EQ(granules.count, count);
    return granules;
}

static void give_dirty(uint32_t first, uint32_t count)
{
    memset(hak_granule_address(first), 0xcd, count * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_pool_give(first, count, count).count, 0);
}

TEST(a_pool_without_superslabs_has_nothing)
{
    CHECK(hak_process_start());
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_ORDINARY).count, 0);
    CHECK_EQ(hak_pool_superslab_count(), 0);
    CHECK_EQ(hak_pool_purge(UINT64_MAX, UINT32_MAX), 0);
}

TEST(granules_are_taken_once_and_aligned_by_their_count)
{
    uint32_t first = superslab_add();
    uint32_t seen = 0, taken = 0;
    for (uint32_t count = ALL / 4; taken < ALL; count = count > 1 ? count / 2 : 1) {
        struct pool_granules granules = take(count);
        uint32_t at = granules.first - first;
        uint32_t mask = (uint32_t)hak_bit_low_mask(count) << at;
        CHECK_EQ(at % count, 0);
        CHECK(at + count <= ALL);
        CHECK_EQ(seen & mask, 0);
        CHECK(granules.is_zero);
        CHECK(!granules.is_warm);
        seen |= mask;
        taken += count;
    }
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_ORDINARY).count, 0);
}

TEST(a_run_that_no_superslab_has_is_not_served_in_pieces)
{
    uint32_t first = superslab_add();
    for (uint32_t i = 0; i < ALL; i++)
        take(1);
    for (uint32_t i = 0; i < ALL; i += 2)
        hak_pool_give(first + i, 1, 1);
    CHECK_EQ(hak_pool_take(2, 1, PARTITION_ORDINARY).count, 0);
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_ORDINARY).count, 1);
}

TEST(granules_that_were_used_are_warm_and_taken_first)
{
    superslab_add();
    struct pool_granules first = take(1), second = take(1);
    give_dirty(second.first, 1);
    CHECK_EQ(hak_pool_warm_count(), 1);
    struct pool_granules again = take(1);
    CHECK_EQ(again.first, second.first);
    CHECK(!again.is_zero);
    CHECK(again.is_warm);
    CHECK_EQ(hak_pool_warm_count(), 0);
    CHECK(take(1).is_zero);
    CHECK(first.is_zero);
}

TEST(granules_given_back_untouched_still_read_as_zero)
{
    superslab_add();
    struct pool_granules granules = take(2);
    memset(hak_granule_address(granules.first), 1, 10);
    hak_pool_give(granules.first, 2, 1);
    CHECK_EQ(hak_pool_warm_count(), 1);
    CHECK(!take(1).is_zero); /* the warm one */
    CHECK(take(1).is_zero);
}

TEST(the_fullest_superslab_serves_first)
{
    superslab_add();
    uint32_t fuller = take(ALL / 2).first;
    uint32_t emptier = superslab_add();
    struct pool_granules granules = take(1);
    CHECK_EQ(granules.first / ALL, fuller / ALL);
    CHECK(granules.first / ALL != emptier / ALL);
}

TEST(one_free_superslab_is_kept_and_the_next_is_returned)
{
    uint32_t first = superslab_add(), second = superslab_add();
    for (uint32_t i = 0; i < 2 * ALL; i++)
        take(1);
    for (uint32_t i = 0; i < ALL; i++)
        CHECK_EQ(hak_pool_give(first + i, 1, 1).count, 0);
    for (uint32_t i = 0; i + 1 < ALL; i++)
        CHECK_EQ(hak_pool_give(second + i, 1, 1).count, 0);
    struct granule_range spare = hak_pool_give(second + ALL - 1, 1, 1);
    CHECK_EQ(spare.first, second);
    CHECK_EQ(spare.count, ALL);
    CHECK_EQ(hak_pool_superslab_count(), 1);
    CHECK_EQ(hak_pool_warm_count(), ALL);
    CHECK_EQ(take(1).first / ALL, first / ALL);
}

TEST(purged_granules_read_as_zero_again)
{
    superslab_add();
    struct pool_granules granules = take(ALL / 2);
    give_dirty(granules.first, ALL / 2);
    CHECK_EQ(hak_pool_purge(UINT64_MAX, 1), ALL / 2 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_pool_warm_count(), 0);
    CHECK_EQ(hak_mappings_count(), 0); /* a huge page would have been refused */
    granules = take(ALL / 2);
    CHECK(granules.is_zero);
    CHECK(!granules.is_warm);
    CHECK_EQ(*(unsigned char *)hak_granule_address(granules.first), 0);
}

TEST(a_purge_skips_recently_freed_memory_and_stops_at_its_budget)
{
    uint32_t first[2];
    for (uint32_t i = 0; i < 2; i++) {
        superslab_add();
        first[i] = take(ALL / 2).first;
        take(ALL / 2);
    }
    uint64_t before = hak_os_clock_ms();
    CHECK(!hak_pool_has_warm(before));
    give_dirty(first[0], 1);
    give_dirty(first[1], 1);
    CHECK(hak_pool_has_warm(hak_os_clock_ms()));
    CHECK(!hak_pool_has_warm(before - 1));
    CHECK_EQ(hak_pool_purge(before - 1, UINT32_MAX), 0);
    CHECK_EQ(hak_pool_purge(UINT64_MAX, 1), HAK_GRANULE_BYTES);
    CHECK_EQ(hak_pool_warm_count(), 1);
    CHECK_EQ(hak_pool_purge(UINT64_MAX, UINT32_MAX), HAK_GRANULE_BYTES);
    CHECK(!hak_pool_has_warm(hak_os_clock_ms()));
}

TEST(a_purge_that_the_kernel_refuses_ends_and_keeps_the_granules_warm)
{
    need_faults();
    superslab_add();
    struct pool_granules granules = take(2);
    give_dirty(granules.first, 2);
    hak_os_fault_every(1);
    CHECK_EQ(hak_pool_purge(UINT64_MAX, UINT32_MAX), 0);
    hak_os_fault_every(0);
    CHECK_EQ(hak_pool_warm_count(), 2);
    CHECK(!take(2).is_zero);
}

TEST(heaps_take_from_different_groups_of_tag_words_while_they_can)
{
    if (HAK_TINY)
        SKIP("a tiny superslab is one group");
    superslab_add();
    uint32_t mine = hak_pool_take(1, 1, PARTITION_ORDINARY).first;
    uint32_t theirs = hak_pool_take(1, 2, PARTITION_ORDINARY).first;
    CHECK(mine / 16 != theirs / 16);
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_ORDINARY).first / 16, mine / 16);
    CHECK_EQ(hak_pool_take(1, 2, PARTITION_ORDINARY).first / 16, theirs / 16);
}

TEST(a_superslab_that_comes_back_is_no_heaps)
{
    if (HAK_TINY)
        SKIP("a tiny superslab is one group");
    uint32_t first = superslab_add();
    take(ALL);
    superslab_add();
    CHECK_EQ(hak_pool_give(first, ALL, ALL).first, first);
    hak_pool_add(first, PARTITION_ORDINARY, false, PAGES_SMALL);
    CHECK_EQ(hak_pool_take(1, 2, PARTITION_ORDINARY).first, first);
}

/* A superslab that the kernel was asked to back by a huge page, with half of it taken. */
static uint32_t huge_half_taken(void)
{
    CHECK(hak_process_start());
    uint32_t first = hak_region_grow(ALL).first;
    hak_pool_add(first, PARTITION_ORDINARY, true, PAGES_ASKED);
    CHECK_EQ(hak_pool_warm_count(), 0);
    return take(ALL / 2).first;
}

TEST(all_of_a_huge_superslab_that_was_touched_may_be_resident)
{
    huge_half_taken();
    CHECK_EQ(hak_pool_warm_count(), ALL / 2);
    struct pool_granules rest = take(ALL / 2);
    CHECK(rest.is_zero);
    CHECK_EQ(hak_pool_warm_count(), 0);
}

TEST(a_purge_of_a_part_ends_a_huge_superslab)
{
    uint32_t first = huge_half_taken();
    CHECK_EQ(hak_mappings_count(), 0);
    CHECK_EQ(hak_pool_purge(UINT64_MAX, UINT32_MAX), ALL / 2 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_mappings_count(), 2); /* it refuses huge pages now, as its neighbours do not */
    CHECK_EQ(hak_pool_warm_count(), 0);
    CHECK(hak_pool_break_huge(first));
    /* A slab that touched one granule only: the others were resident all the same. */
    hak_pool_give(first, ALL / 2, 1);
    CHECK_EQ(hak_pool_warm_count(), ALL / 2);
    CHECK_EQ(hak_pool_purge(UINT64_MAX, UINT32_MAX), ALL / 2 * HAK_GRANULE_BYTES);
    CHECK(take(ALL).is_zero);
}

TEST(free_granules_of_a_superslab_that_stops_being_huge_stay_warm_and_do_not_read_as_zero)
{
    uint32_t first = huge_half_taken();
    CHECK(hak_pool_break_huge(first));
    CHECK_EQ(hak_pool_warm_count(), ALL / 2);
    CHECK(!take(ALL / 2).is_zero);
    superslab_add();
    CHECK(!hak_pool_break_huge(take(ALL).first));
}

TEST(a_huge_superslab_that_was_returned_whole_may_be_huge_again)
{
    uint32_t first = huge_half_taken();
    hak_pool_give(first, ALL / 2, 1);
    CHECK_EQ(hak_pool_warm_count(), ALL);
    CHECK_EQ(hak_pool_purge(UINT64_MAX, UINT32_MAX), ALL * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_pool_warm_count(), 0);
    CHECK(take(ALL / 2).is_zero);
    CHECK_EQ(hak_pool_warm_count(), ALL / 2);
}

TEST(a_touched_huge_superslab_goes_back_although_nobody_used_it)
{
    CHECK(hak_process_start());
    hak_pool_add(hak_region_grow(ALL).first, PARTITION_ORDINARY, true, PAGES_HUGE);
    CHECK_EQ(hak_pool_warm_count(), ALL);
    CHECK_EQ(hak_pool_purge(UINT64_MAX, UINT32_MAX), HAK_SUPERSLAB_BYTES);
    CHECK_EQ(hak_pool_warm_count(), 0);
}

TEST(a_huge_superslab_that_leaves_the_pool_is_huge_no_longer)
{
    huge_half_taken();
    take(ALL / 2);
    uint32_t second = huge_half_taken();
    take(ALL / 2);
    superslab_add();
    struct granule_range spare;
    for (uint32_t i = 0; i < ALL; i++)
        spare = hak_pool_give(second + i, 1, 1);
    CHECK_EQ(spare.first, second);
    CHECK_EQ(spare.count, ALL);
    CHECK_EQ(hak_mappings_count(), 0);
    hak_pool_end_huge(spare.first);
    CHECK_EQ(hak_mappings_count(), 2);
    hak_pool_add(spare.first, PARTITION_ORDINARY, false, PAGES_SMALL);
    take(ALL);
    take(ALL);
    CHECK(!hak_pool_break_huge(spare.first));
}

/* Not a trim, which says nothing about ages. */
#define ALL_OLD (UINT64_MAX - 1)

TEST(granules_that_come_back_a_little_late_are_kept_longer)
{
    superslab_add();
    hak_store_relaxed(&hak_policy.pool_episodes, 4);
    hak_store_relaxed(&hak_policy.decay_ms, 100);
    CHECK_EQ(hak_pool_keep_ms(), 100);
    for (int i = 0; i < 6; i++) {
        give_dirty(take(4).first, 4);
        CHECK(hak_pool_purge(ALL_OLD, 8) > 0);
        nanosleep(&(struct timespec){0, 150000000}, NULL);
    }
    CHECK(hak_pool_keep_ms() > 100);
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.granules_missed_bytes), 5 * 4 * HAK_GRANULE_BYTES);
}

TEST(a_trim_teaches_nothing_about_how_long_granules_are_kept)
{
    superslab_add();
    hak_store_relaxed(&hak_policy.pool_episodes, 1);
    for (int i = 0; i < 10; i++) {
        give_dirty(take(4).first, 4);
        CHECK(hak_pool_purge(UINT64_MAX, 8) > 0);
    }
    CHECK_EQ(hak_pool_keep_ms(), hak_policy_read(decay_ms));
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.granules_missed_bytes), 0);
}

TEST(granules_of_one_partition_never_serve_another)
{
    uint32_t ordinary = superslab_add();
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_LONG).count, 0);
    struct granule_range range = hak_region_grow(ALL);
    hak_pool_add(range.first, PARTITION_LONG, true, PAGES_SMALL);
    for (uint32_t i = 0; i < ALL; i++) {
        CHECK_EQ(hak_pool_take(1, 1, PARTITION_LONG).first / ALL, range.first / ALL);
        CHECK_EQ(take(1).first / ALL, ordinary / ALL);
    }
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_LONG).count, 0);
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_ORDINARY).count, 0);
}

static void take_two_long(uint32_t first[2])
{
    for (int i = 0; i < 2; i++) {
        first[i] = hak_process_start() ? hak_region_grow(ALL).first : 0;
        hak_pool_add(first[i], PARTITION_LONG, true, PAGES_SMALL);
        CHECK_EQ(hak_pool_take(ALL, 1, PARTITION_LONG).count, ALL);
    }
}

TEST(of_two_free_superslabs_of_the_long_partition_one_leaves)
{
    uint32_t first[2];
    take_two_long(first);
    superslab_add(); /* a free one of the other partition */
    CHECK_EQ(hak_pool_give(first[0], ALL, ALL).count, 0);
    struct granule_range spare = hak_pool_give(first[1], ALL, ALL);
    CHECK(spare.count == ALL && spare.first == first[1]);
    CHECK_EQ(hak_pool_free_count(PARTITION_LONG), ALL);
    CHECK_EQ(hak_pool_free_count_all(), 2 * ALL);
}

TEST(a_free_superslab_of_the_long_partition_stays_in_hardened_mode)
{
    uint32_t first[2];
    take_two_long(first);
    hak_store_relaxed(&hak_harden, HARDEN_EXACT);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(hak_pool_give(first[i], ALL, ALL).count, 0);
    CHECK_EQ(hak_pool_take_spare().count, 0);
    CHECK_EQ(hak_pool_superslab_count(), 2);
    superslab_add();
    CHECK_EQ(hak_pool_take_spare().count, 0);
    superslab_add();
    CHECK_EQ(hak_pool_take_spare().count, ALL); /* all but one leave */
}

TEST(a_pool_that_a_jump_left_locked_restarts_with_memory_returned_later)
{
    uint32_t first = superslab_add();
    uint32_t huge = hak_region_grow(ALL).first;
    hak_pool_add(huge, PARTITION_LONG, true, PAGES_ASKED);
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_LONG).count, 1);
    uint32_t kept = take(1).first;
    give_dirty(take(1).first, 1);
    hak_lock_take(&hak_pool_lock);
    hak_pool_mend();
    CHECK_EQ(hak_pool_superslab_count(), 0);
    CHECK_EQ(hak_pool_free_count_all() + hak_pool_warm_count(), 0);
    CHECK_EQ(hak_pool_huge_count() + hak_pool_untouched_count(), 0);
    CHECK(!hak_pool_has_warm(UINT64_MAX - 1));
    CHECK(!hak_pool_is_untouched(first + ALL - 1));
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_ORDINARY).count, 0);
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_LONG).count, 0);
    CHECK_EQ(hak_pool_purge(UINT64_MAX, UINT32_MAX), 0);

    CHECK_EQ(hak_pool_give(kept, 1, 1).count, 0);
    CHECK_EQ(hak_pool_superslab_count(), 1);
    CHECK_EQ(hak_pool_free_count_all(), 1);
    CHECK_EQ(hak_pool_warm_count(), 1);
    CHECK_EQ(take(1).first, kept);
    CHECK_EQ(hak_pool_take(1, 1, PARTITION_ORDINARY).count, 0);
}

TEST(a_pool_that_was_not_left_locked_is_not_repaired)
{
    superslab_add();
    give_dirty(take(1).first, 1);
    hak_pool_mend();
    CHECK_EQ(hak_pool_superslab_count(), 1);
    CHECK_EQ(hak_pool_free_count_all(), ALL);
    CHECK_EQ(hak_pool_warm_count(), 1);
}
