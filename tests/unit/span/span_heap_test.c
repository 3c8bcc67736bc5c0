/* SPDX-License-Identifier: MIT */
/* tests/unit/span/span_heap_test.c - runs of granules are split, joined, extended, cut and
 * purged. */
#include "check.h"
#include "faults.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "process/start.h"
#include "threads.h"

#include "policy/policy_table.h"
#include "region/tag_map.h"
#include "span/detached.h"
#include "span/span_heap.h"
#include "span/span_lock.h"
#include "span/span_purge.h"

static struct span *take(uint32_t count)
{
    bool is_zero;
    CHECK(hak_process_start());
    struct span *span = hak_span_take(count, 1, &is_zero);
    CHECK(span != NULL);
    CHECK_EQ(span->count, count);
    return span;
}

static _Atomic bool is_purging;

static size_t granules_bytes(size_t count)
{
    return count << HAK_GRANULE_SHIFT;
}

static size_t committed_bytes(void)
{
    return hak_load_relaxed(&hak_region.committed_bytes);
}

TEST(a_fresh_span_reads_as_zero_and_lies_in_the_window)
{
    bool is_zero = false;
    CHECK(hak_process_start());
    struct span *span = hak_span_take(3, 1, &is_zero);
    CHECK(is_zero);
    CHECK_EQ(span->state, SPAN_USED);
    unsigned char *start = hak_granule_address(span->first);
    CHECK(hak_region_holds(start));
    CHECK(hak_region_holds(start + granules_bytes(3) - 1));
    CHECK_BYTES(start, granules_bytes(3), 0);
    CHECK_EQ(hak_span_clean_bytes(), committed_bytes() - granules_bytes(3));
    CHECK(hak_span_heap_is_sound());
}

/* No span was taken before it. */
TEST(a_superslab_can_be_the_first_memory_that_is_given_back)
{
    CHECK(hak_process_start());
    struct granule_range range = hak_span_fresh_superslab();
    CHECK_EQ(range.count, HAK_SUPERSLAB_GRANULES);
    struct span *span = hak_span_attach(range);
    CHECK(span != NULL);
    hak_span_give(span);
    CHECK_EQ(hak_span_warm_bytes(), HAK_SUPERSLAB_BYTES);
    CHECK(hak_span_heap_is_sound());
}

TEST(the_address_of_a_span_has_the_alignment_that_was_asked)
{
    bool is_zero;
    CHECK(hak_process_start());
    for (uint32_t alignment = 1; alignment <= 512; alignment *= 2) {
        struct span *span = hak_span_take(1, alignment, &is_zero);
        CHECK(span != NULL);
        uintptr_t address = (uintptr_t)hak_granule_address(span->first);
        CHECK_EQ(address % granules_bytes(alignment), 0);
        CHECK(hak_span_heap_is_sound());
    }
}

TEST(a_given_span_is_warm_and_taken_again_first)
{
    struct span *first = take(4), *wall = take(1);
    uint32_t place = first->first;
    CHECK_EQ(hak_span_oldest_ms(), UINT64_MAX);
    hak_span_give(first);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(4));
    CHECK(hak_span_oldest_ms() <= hak_os_clock_ms());
    bool is_zero = true;
    struct span *again = hak_span_take(4, 1, &is_zero);
    CHECK_EQ(again->first, place);
    CHECK(!is_zero);
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK(wall->first != again->first);
}

TEST(neighbours_that_are_free_become_one_span)
{
    struct span *spans[3];
    for (int i = 0; i < 3; i++)
        spans[i] = take(2);
    struct span *wall = take(1);
    uint32_t place = spans[0]->first;
    CHECK_EQ(spans[2]->first, place + 4);
    CHECK_EQ(wall->first, place + 6);
    hak_span_give(spans[0]);
    hak_span_give(spans[2]);
    CHECK(hak_span_heap_is_sound());
    hak_span_give(spans[1]);
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(6));
    CHECK_EQ(take(6)->first, place);
}

TEST(the_smallest_gap_that_fits_serves)
{
    struct span *large = take(9), *wall = take(1), *small = take(3), *second_wall = take(1);
    uint32_t place = small->first;
    hak_span_give(large);
    hak_span_give(small);
    CHECK_EQ(take(3)->first, place);
    CHECK(wall != second_wall);
    CHECK(hak_span_heap_is_sound());
}

TEST(what_is_left_of_a_gap_stays_free)
{
    struct span *gap = take(8), *wall = take(1);
    uint32_t place = gap->first;
    hak_span_give(gap);
    CHECK_EQ(take(5)->first, place);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(3));
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(take(3)->first, place + 5);
    CHECK(wall->first > place);
}

TEST(a_span_grows_in_place_into_a_free_neighbour_only)
{
    struct span *span = take(2), *neighbour = take(3), *wall = take(1);
    CHECK(!hak_span_extend(span, 3));
    CHECK_EQ(span->count, 2);
    hak_span_give(neighbour);
    CHECK(!hak_span_extend(span, 6));
    CHECK(hak_span_extend(span, 4));
    CHECK_EQ(span->count, 4);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(1));
    CHECK(hak_span_heap_is_sound());
    CHECK(hak_span_extend(span, 5));
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK(!hak_span_extend(span, 6));
    CHECK_EQ(wall->first, span->first + 5);
    hak_span_give(span);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(5));
    CHECK(hak_span_heap_is_sound());
}

TEST(the_cut_end_of_a_span_is_free)
{
    struct span *span = take(7), *wall = take(1);
    hak_span_cut(span, 4);
    CHECK_EQ(span->count, 4);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(3));
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(take(3)->first, span->first + 4);
    CHECK(wall->first > span->first);
}

TEST(granules_survive_their_record)
{
    struct span *span = take(4);
    uint32_t place = span->first;
    struct granule_range range = hak_span_detach(span);
    CHECK_EQ(range.first, place);
    CHECK_EQ(range.count, 4);
    CHECK(take(4)->first != place);
    struct span *again = hak_span_attach(range);
    CHECK_EQ(again->first, place);
    CHECK_EQ(again->count, 4);
    CHECK_EQ(again->state, SPAN_USED);
    hak_span_give(again);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(4));
    CHECK(hak_span_heap_is_sound());
}

TEST(what_superslabs_left_lately_is_known_for_as_long_as_memory_is_kept)
{
    struct span *spans[3] = {take(4), take(4), take(4)};
    struct granule_range ranges[3];
    hak_store_relaxed(&hak_policy.decay_ms, 600000);
    for (int i = 0; i < 3; i++)
        ranges[i] = hak_span_detach(spans[i]);
    CHECK_EQ(hak_span_attached_bytes(), 0);
    spans[0] = hak_span_attach(ranges[0]);
    spans[1] = hak_span_attach(ranges[1]);
    CHECK_EQ(hak_span_attached_bytes(), granules_bytes(8));
    ranges[0] = hak_span_detach(spans[0]);
    CHECK_EQ(hak_span_attached_bytes(), granules_bytes(4));
    hak_store_relaxed(&hak_policy.decay_ms, 0);
    CHECK_EQ(hak_span_attached_bytes(), 0);
    hak_store_relaxed(&hak_policy.decay_ms, 600000);
    CHECK_EQ(hak_span_attached_bytes(), 0); /* once forgotten, for good */
    spans[2] = hak_span_attach(ranges[2]);
    CHECK_EQ(hak_span_attached_bytes(), granules_bytes(4));
}

TEST(an_old_peak_is_not_what_the_next_superslab_left)
{
    struct span *spans[2] = {take(4), take(4)};
    struct granule_range ranges[2];
    hak_store_relaxed(&hak_policy.decay_ms, 600000);
    for (int i = 0; i < 2; i++)
        ranges[i] = hak_span_detach(spans[i]);
    hak_span_attach(ranges[0]);
    CHECK_EQ(hak_span_attached_bytes(), granules_bytes(4));
    hak_store_relaxed(&hak_policy.decay_ms, 1);
    for (uint64_t start_ms = hak_os_clock_ms(); hak_os_clock_ms() < start_ms + 3;)
        ;
    hak_span_attach(ranges[1]);
    hak_store_relaxed(&hak_policy.decay_ms, 600000);
    CHECK_EQ(hak_span_attached_bytes(), granules_bytes(4));
}

TEST(a_purged_span_is_clean_and_reads_as_zero)
{
    struct span *span = take(2), *wall = take(1);
    memset(hak_granule_address(span->first), 7, granules_bytes(2));
    hak_span_give(span);
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 10), granules_bytes(2));
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK_EQ(hak_span_clean_bytes(), committed_bytes() - granules_bytes(1));
    CHECK(hak_span_heap_is_sound());
    bool is_zero = false;
    struct span *again = hak_span_take(2, 1, &is_zero);
    CHECK(is_zero);
    CHECK_EQ(*(unsigned char *)hak_granule_address(again->first), 0);
    CHECK(wall != again);
}

/* Four warm spans of 1, 2, 3 and 4 granules with walls between, oldest first. */
static void four_warm_spans(void)
{
    struct span *spans[4];
    for (uint32_t i = 0; i < 4; i++) {
        spans[i] = take(i + 1);
        take(1);
    }
    for (uint32_t i = 0; i < 4; i++)
        hak_span_give(spans[i]);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(10));
}

TEST(a_purge_takes_the_oldest_first_and_obeys_its_budget)
{
    four_warm_spans();
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 1), granules_bytes(1));
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 2), granules_bytes(5));
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 9), granules_bytes(4));
    CHECK(hak_span_heap_is_sound());
}

TEST(what_is_left_of_a_span_is_no_older_than_that_was)
{
    struct span *older = take(8);
    take(1);
    struct span *younger = take(5);
    take(1);
    hak_span_give(older);
    hak_span_give(younger);
    take(4);
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 1), granules_bytes(8));
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 9), granules_bytes(1));
    CHECK(hak_span_heap_is_sound());
}

TEST(a_long_span_that_a_short_one_joins_is_no_younger)
{
    struct span *longest = take(8), *neighbour = take(1);
    take(1);
    struct span *younger = take(2);
    take(1);
    hak_span_give(longest);
    hak_span_give(younger);
    hak_span_give(neighbour);
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 1), granules_bytes(9));
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 9), granules_bytes(2));
    CHECK(hak_span_heap_is_sound());
}

TEST(a_short_span_that_a_long_one_joins_is_as_young)
{
    struct span *shortest = take(1), *neighbour = take(8);
    take(1);
    struct span *older = take(2);
    take(1);
    hak_span_give(shortest);
    hak_span_give(older);
    hak_span_give(neighbour);
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 1), granules_bytes(2));
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 9), granules_bytes(9));
    CHECK(hak_span_heap_is_sound());
}

TEST(of_three_spans_that_become_one_the_longest_says_how_old_they_are)
{
    struct span *before = take(1), *span = take(1), *longest = take(8);
    take(1);
    struct span *other = take(2);
    take(1);
    hak_span_give(longest);
    hak_span_give(other);
    hak_span_give(before);
    hak_span_give(span);
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 1), granules_bytes(10));
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 9), granules_bytes(2));
    CHECK(hak_span_heap_is_sound());
}

static struct span *given_meanwhile;

static void give_meanwhile(void)
{
    struct span *span = given_meanwhile;
    given_meanwhile = NULL;
    if (span != NULL)
        hak_span_give(span);
}

TEST(a_purge_leaves_what_others_free_meanwhile)
{
    if (HAK_CHECK_LEVEL < 2)
        SKIP("nobody watches its calls");
    given_meanwhile = take(5);
    take(1);
    four_warm_spans();
    hak_store_relaxed(&hak_os_fault.watch, give_meanwhile);
    CHECK_EQ(hak_span_purge(UINT64_MAX, granules_bytes(4), 100), granules_bytes(6));
    hak_store_relaxed(&hak_os_fault.watch, NULL);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(4 + 5));
}

TEST(a_purge_keeps_as_many_bytes_as_it_is_told)
{
    four_warm_spans();
    CHECK_EQ(hak_span_purge(UINT64_MAX, granules_bytes(10), 9), 0);
    CHECK_EQ(hak_span_purge(UINT64_MAX, granules_bytes(8), 9), granules_bytes(3));
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(7));
}

TEST(a_purge_leaves_spans_that_were_freed_later)
{
    uint64_t before = hak_os_clock_ms() - 1;
    four_warm_spans();
    CHECK_EQ(hak_span_purge(before, 0, 9), 0);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(10));
}

TEST(a_span_that_the_kernel_does_not_purge_stays_warm)
{
    need_faults();
    four_warm_spans();
    hak_os_fault_every(1);
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, UINT32_MAX), 0);
    hak_os_fault_every(0);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(10));
    CHECK(hak_span_heap_is_sound());
}

TEST(what_the_kernel_does_not_purge_counts_as_kept)
{
    need_faults();
    four_warm_spans();
    fail_every(3, FAULT_ADVISE);
    hak_store_relaxed(&hak_os_fault.calls, 2); /* the first is refused, the next two are not */
    CHECK_EQ(hak_span_purge(UINT64_MAX, granules_bytes(8), 9), granules_bytes(2));
    hak_os_fault_every(0);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(8));
    CHECK(hak_span_heap_is_sound());
}

TEST(a_request_beyond_the_window_is_refused_and_changes_nothing)
{
    take(1);
    size_t before = committed_bytes(), clean = hak_span_clean_bytes();
    bool is_zero;
    CHECK_EQ(hak_span_take((uint32_t)(hak_region.window_bytes >> HAK_GRANULE_SHIFT), 1, &is_zero),
             NULL);
    CHECK_EQ(committed_bytes(), before);
    CHECK_EQ(hak_span_clean_bytes(), clean);
    CHECK(hak_span_heap_is_sound());
}

TEST(warm_and_clean_neighbours_are_joined_when_nothing_else_helps)
{
    struct span *clean = take(4), *warm = take(4);
    uint32_t place = clean->first;
    CHECK_EQ(warm->first, place + 4);
    while (hak_span_clean_bytes() != 0)
        take(1);
    hak_span_give(clean);
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 1), granules_bytes(4));
    hak_span_give(warm);
    hak_region.window_bytes = committed_bytes(); /* it cannot grow any more */
    bool is_zero = false;
    struct span *joined = hak_span_take(8, 1, &is_zero);
    CHECK(joined != NULL);
    CHECK_EQ(joined->first, place);
    CHECK(!is_zero);
    CHECK_EQ(hak_span_take(1, 1, &is_zero), NULL);
    CHECK(hak_span_heap_is_sound());
}

/* What a purger has taken out of the bins, as hak_span_purge does. */
static void *purge_slowly(void *span)
{
    hak_lock_take(&hak_region.purge_lock);
    hak_store_relaxed(&is_purging, true);
    usleep(50000);
    hak_span_give_clean(span);
    hak_lock_give(&hak_region.purge_lock);
    return NULL;
}

TEST(memory_being_purged_is_awaited_before_a_request_is_refused)
{
    struct span *span = take(4);
    uint32_t place = span->first;
    while (hak_span_clean_bytes() != 0)
        take(1);
    hak_region.window_bytes = committed_bytes(); /* it cannot grow any more */
    pthread_t purger = start_thread(purge_slowly, span);
    while (!hak_load_relaxed(&is_purging))
        usleep(100);
    bool is_zero = false;
    struct span *taken = hak_span_take(4, 1, &is_zero);
    CHECK(taken != NULL);
    CHECK_EQ(taken->first, place);
    join_thread(purger);
}

TEST(resident_memory_in_front_of_untouched_memory_is_used_first)
{
    struct span *warm = take(2);
    uint32_t place = warm->first;
    hak_span_give(warm);
    bool is_zero = true;
    struct span *joined = hak_span_take(3, 1, &is_zero);
    CHECK_EQ(joined->first, place);
    CHECK_EQ(joined->count, 3);
    CHECK(!is_zero);
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK_EQ(hak_span_clean_bytes(), committed_bytes() - granules_bytes(3));
    CHECK(hak_span_heap_is_sound());
    hak_span_give(joined);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(3));
    CHECK(hak_span_heap_is_sound());
}

TEST(one_resident_granule_in_front_of_untouched_memory_is_used_first_too)
{
    struct span *warm = take(1);
    uint32_t place = warm->first;
    hak_span_give(warm);
    CHECK_EQ(take(2)->first, place);
    CHECK_EQ(hak_span_warm_bytes(), 0);
}

TEST(warm_memory_in_pieces_is_used_together_with_what_lies_between)
{
    struct span *parts[5], *wall;
    for (int i = 0; i < 5; i++)
        parts[i] = take(3);
    wall = take(1);
    uint32_t place = parts[0]->first;
    for (int i = 1; i < 5; i += 2)
        hak_span_give(parts[i]);
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, UINT32_MAX), granules_bytes(6));
    for (int i = 0; i < 5; i += 2)
        hak_span_give(parts[i]);
    CHECK(hak_span_heap_is_sound());
    bool is_zero = true;
    struct span *joined = hak_span_take(8, 1, &is_zero);
    CHECK(!is_zero);
    CHECK(joined->first >= place && joined->first + 8 <= place + 15);
    CHECK(hak_span_warm_bytes() <= granules_bytes(6));
    CHECK(hak_span_heap_is_sound());
    struct span *rest = hak_span_take(7, 1, &is_zero);
    CHECK(rest->first > wall->first || rest->first >= place);
    hak_span_give(joined);
    CHECK(hak_span_heap_is_sound());
}

TEST(a_purge_takes_no_more_than_it_must_from_a_long_span)
{
    struct span *span = take(10 * HAK_SUPERSLAB_GRANULES);
    take(1);
    hak_span_give(span);
    size_t keep = granules_bytes(6 * HAK_SUPERSLAB_GRANULES);
    CHECK(hak_span_purge(UINT64_MAX, keep, 9) >= 4 * HAK_SUPERSLAB_BYTES);
    CHECK(hak_span_warm_bytes() <= keep);
    CHECK(hak_span_warm_bytes() > keep - HAK_SUPERSLAB_BYTES);
    CHECK(hak_span_heap_is_sound());
}

TEST(a_span_heap_that_a_jump_left_locked_restarts_empty)
{
    struct span *before = take(2), *used = take(3), *behind = take(2);
    take(1);
    hak_span_give(before);
    hak_span_give(behind);
    size_t known = hak_span_known_bytes();
    size_t lost = hak_span_warm_bytes() + hak_span_clean_bytes();
    hak_span_lock();
    hak_span_mend();
    CHECK_EQ(hak_span_warm_bytes() + hak_span_clean_bytes(), 0);
    CHECK_EQ(hak_span_known_bytes(), known - lost);
    CHECK_EQ(hak_span_oldest_ms(), UINT64_MAX);
    CHECK(hak_span_heap_is_sound());
    /* What it lost is no neighbour: nothing joins it or grows into it. */
    CHECK(!hak_span_extend(used, 4));
    hak_span_give(used);
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(3));
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, 9), granules_bytes(3));
    CHECK(take(4)->first >= (known >> HAK_GRANULE_SHIFT));
}

TEST(a_span_heap_that_was_not_left_locked_is_not_repaired)
{
    hak_span_give(take(2));
    size_t clean = hak_span_clean_bytes(), known = hak_span_known_bytes();
    hak_span_mend();
    CHECK_EQ(hak_span_warm_bytes(), granules_bytes(2));
    CHECK_EQ(hak_span_clean_bytes(), clean);
    CHECK_EQ(hak_span_known_bytes(), known);
}

/* With or without a granule that a block would hardly use. */
static struct span *take_roughly(uint32_t count)
{
    bool is_zero;
    struct span *span =
        hak_span_take_wished((struct span_fit){count, 1, 0}, count + 1, 0, &is_zero);
    CHECK(span != NULL && (span->count == count || span->count == count + 1));
    return span;
}

TEST(random_takes_and_gives_leave_the_heap_sound)
{
    static struct span *spans[64];
    uint64_t random = 3;
    for (uint32_t i = 0; i < 6000; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t at = (uint32_t)(random >> 33) % 64;
        uint32_t count = 1 + (uint32_t)(random >> 40) % (i % 2 == 0 ? 90 : 4);
        if (spans[at] == NULL)
            spans[at] = i % 2 == 0 ? take(count) : take_roughly(count);
        else if (i % 2 == 0 && count < spans[at]->count)
            hak_span_cut(spans[at], count);
        else if (count % 2 != 0 || !hak_span_extend(spans[at], spans[at]->count + 1))
            hak_span_give(spans[at]), spans[at] = NULL;
        if (i % 8 == 0)
            CHECK(hak_span_heap_is_sound());
        if (i % 200 == 0)
            hak_span_purge(UINT64_MAX, granules_bytes(50), 3);
    }
    for (uint32_t at = 0; at < 64; at++)
        if (spans[at] != NULL)
            hak_span_give(spans[at]);
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(hak_span_clean_bytes(), committed_bytes());
    CHECK_EQ(take((uint32_t)(committed_bytes() >> HAK_GRANULE_SHIFT))->first, 0);
}
