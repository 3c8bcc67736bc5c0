/* SPDX-License-Identifier: MIT */
/* tests/unit/span/large_test.c - one span, one block; misuse is named. */
#define _GNU_SOURCE /* mlock2 */
#include "base/bits.h"
#include "check.h"
#include "heap/limit.h"
#include "heap/supply.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "os/os_huge.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "region/tag_map.h"
#include "span/span_cache.h"
#include "span/span_heap.h"
#include "span/span_purge.h"
#include "stats/counters.h"
#include "unit/asan.h"
#include "unit/resident.h"
#include "unit/span/take_large.h"

#include <sys/mman.h>

#define BYTES ((size_t)200000)

static unsigned char *take(size_t bytes)
{
    CHECK(hak_process_start());
    unsigned char *block = take_large(bytes, 16, LARGE_ANY);
    CHECK(block != NULL);
    return block;
}

TEST(a_large_block_has_the_bytes_that_were_asked)
{
    unsigned char *block = take(BYTES);
    CHECK_EQ((uintptr_t)block % 16, 0);
    CHECK(hak_large_usable_bytes(block, "test") >= BYTES);
    CHECK_EQ(hak_large_live_bytes(), 4 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_tag_read(hak_granule_of(block)), HAK_TAG_SPAN);
    memset(block, 1, hak_large_usable_bytes(block, "test"));
    hak_large_give(block);
    CHECK_EQ(hak_large_live_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
}

TEST(the_usable_bytes_end_with_the_span)
{
    for (int i = 0; i < 70; i++) {
        unsigned char *block = take(BYTES);
        uintptr_t end = (uintptr_t)block + hak_large_usable_bytes(block, "test");
        CHECK_EQ(end, (uintptr_t)hak_granule_address(hak_granule_of(block) + 4u));
    }
}

/* At which cache lines of a page 64 blocks start. */
static uint64_t lines_from(unsigned char *(*take_one)(size_t), size_t bytes)
{
    uint64_t lines = 0;
    for (int i = 0; i < 64; i++)
        lines |= 1ull << ((uintptr_t)take_one(bytes) % 4096 / 64);
    return lines;
}

static uint64_t lines_of(size_t bytes)
{
    return lines_from(take, bytes);
}

TEST(large_blocks_of_one_size_start_at_varying_cache_lines)
{
    static const size_t sizes[] = {BYTES, 4 * HAK_GRANULE_BYTES, HAK_MIB - 1, HAK_MIB,
                                   16 * HAK_MIB + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        CHECK(hak_bit_count(lines_of(sizes[i])) >= 12);
}

TEST(large_blocks_beside_each_other_start_at_different_cache_lines)
{
    for (uint32_t count = 2; count < 33; count++) {
        if (count == 2 || count == 18 || count == 21)
            continue; /* some of these have the same start */
        unsigned char *block = take(count * HAK_GRANULE_BYTES);
        unsigned char *next = take(count * HAK_GRANULE_BYTES);
        if (hak_granule_of(next) == hak_granule_of(block) + count + 1)
            CHECK((uintptr_t)block % 4096 != (uintptr_t)next % 4096);
    }
}

static unsigned char *take_supplied(size_t bytes)
{
    CHECK(hak_process_start());
    struct large_request request = hak_supply_request(bytes, 16, LARGE_ANY);
    unsigned char *block = hak_supply_large(NULL, &request);
    CHECK(block != NULL);
    return block;
}

static uint64_t packed_lines_of(size_t bytes)
{
    return lines_from(take_supplied, bytes);
}

TEST(where_memory_is_bounded_blocks_below_1_mib_start_where_there_is_room)
{
    _Atomic uint64_t *bounds[] = {&hak_policy.limit_bytes, &hak_policy.soft_limit_bytes,
                                  &hak_limit_group_bytes};
    CHECK(packed_lines_of(4 * HAK_GRANULE_BYTES) != 1);
    for (int i = 0; i < 3; i++) {
        hak_store_relaxed(bounds[i], 1ull << 40);
        size_t before = hak_large_live_bytes();
        CHECK_EQ(packed_lines_of(4 * HAK_GRANULE_BYTES), 1);
        CHECK_EQ(hak_large_live_bytes() - before, 64 * 4 * HAK_GRANULE_BYTES);
        CHECK_EQ(packed_lines_of(3 * HAK_GRANULE_BYTES - 200), 0xf);
        CHECK(hak_bit_count(packed_lines_of(HAK_MIB)) >= 12);
        hak_store_relaxed(bounds[i], 0);
    }
}

TEST(a_block_in_the_place_of_another_starts_where_that_did)
{
    static const size_t sizes[] = {BYTES, 4 * HAK_GRANULE_BYTES, 2 * HAK_MIB};
    for (int i = 0; i < 60; i++) {
        void *before = take(sizes[i / 20]);
        hak_large_give(before);
        CHECK_EQ(take(sizes[i / 20]), before);
    }
}

/* So many blocks of so many bytes are taken and filled. */
static void fill(unsigned char **blocks, int count, size_t bytes)
{
    for (int i = 0; i < count; i++)
        memset(blocks[i] = take(bytes), 1, bytes);
}

static void give_all(unsigned char **blocks, int count)
{
    for (int i = 0; i < count; i++)
        hak_large_give(blocks[i]);
}

/* A varying start would cost a fifth here. */
TEST(a_block_of_whole_granules_holds_no_more_of_memory_that_was_used)
{
    unsigned char *blocks[260];
    refuse_huge_pages();
    fill(blocks, 260, 100000);
    give_all(blocks, 260);
    fill(blocks, 100, 4 * HAK_GRANULE_BYTES);
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    size_t live = 100 * 4 * HAK_GRANULE_BYTES;
    CHECK(window_resident_bytes() >= live && window_resident_bytes() <= live / 100 * 105);
    CHECK(hak_span_heap_is_sound());
}

TEST(nor_does_one_where_a_longer_block_was_that_was_filled)
{
    unsigned char *blocks[100], *kept[100];
    refuse_huge_pages();
    for (int i = 0; i < 100; i++) {
        fill(&blocks[i], 1, 5 * HAK_GRANULE_BYTES - 4096);
        fill(&kept[i], 1, 3 * HAK_GRANULE_BYTES - 4096);
    }
    give_all(blocks, 100);
    size_t before = hak_large_live_bytes();
    fill(blocks, 100, 4 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_large_live_bytes() - before, 100 * 4 * HAK_GRANULE_BYTES);
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    size_t live = 100 * (4 + 3) * HAK_GRANULE_BYTES;
    CHECK(window_resident_bytes() <= live / 100 * 105);
}

TEST(blocks_of_whole_granules_that_are_taken_again_touch_the_same_pages)
{
    unsigned char *blocks[100];
    refuse_huge_pages();
    fill(blocks, 100, 4 * HAK_GRANULE_BYTES);
    size_t before = window_resident_bytes();
    for (int round = 0; round < 3; round++) {
        give_all(blocks, 100);
        fill(blocks, 100, 4 * HAK_GRANULE_BYTES);
        CHECK_EQ(window_resident_bytes(), before);
    }
    CHECK(hak_span_heap_is_sound());
}

TEST(what_a_span_cache_holds_serves_blocks_of_whole_granules)
{
    static struct span_cache cache;
    unsigned char *block[2];
    fill(block, 1, 11 * HAK_GRANULE_BYTES);
    hak_large_give(block[0]);
    fill(block, 2, 4 * HAK_GRANULE_BYTES); /* of used memory, with no room for another start */
    struct large_request request = {4 * HAK_GRANULE_BYTES, 16, LARGE_ANY, LARGE_ROOMY, 0};
    hak_large_keep(&cache, hak_large_end(block[0]), SIZE_MAX);
    CHECK(hak_large_fits_cache(&request));
    struct span *span = hak_large_find(&cache, &request);
    CHECK(span != NULL);
    CHECK_EQ(hak_large_take_in(span, &request), block[0]);
}

/* The first ones lend a granule for their start, the longer ones use it. */
TEST(nor_does_one_where_a_longer_block_had_its_place_from_a_span_cache)
{
    static struct span_cache cache;
    unsigned char *blocks[10], *kept[10];
    struct large_request request = {5 * HAK_GRANULE_BYTES, 16, LARGE_ANY, LARGE_ROOMY, 0};
    for (int i = 0; i < 10; i++) {
        fill(&blocks[i], 1, 4 * HAK_GRANULE_BYTES);
        fill(&kept[i], 1, BYTES);
    }
    for (int i = 0; i < 10; i++) {
        hak_large_keep(&cache, hak_large_end(blocks[i]), SIZE_MAX);
        struct span *span = hak_large_find(&cache, &request);
        CHECK(span != NULL);
        CHECK((blocks[i] = hak_large_take_in(span, &request)) != NULL);
    }
    give_all(blocks, 10);
    size_t before = hak_large_live_bytes();
    fill(blocks, 10, 4 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_large_live_bytes() - before, 10 * 4 * HAK_GRANULE_BYTES);
}

TEST(a_varying_start_costs_at_most_a_granule)
{
    for (size_t bytes = 2 * HAK_GRANULE_BYTES; bytes <= 64 * HAK_MIB;
         bytes = bytes * 2 + HAK_GRANULE_BYTES) {
        size_t before = hak_large_live_bytes();
        CHECK(hak_large_usable_bytes(take(bytes), "test") <= bytes + HAK_GRANULE_BYTES);
        CHECK_EQ(hak_large_live_bytes() - before, bytes + HAK_GRANULE_BYTES);
    }
    size_t before = hak_large_live_bytes();
    CHECK(take_large(HAK_MIB, 4096, LARGE_ANY) != NULL);
    CHECK_EQ(hak_large_live_bytes() - before, HAK_MIB);
}

TEST(no_request_is_refused_for_its_varying_start)
{
    CHECK(hak_process_start());
    unsigned char *block = take(hak_region.window_bytes);
    CHECK_EQ((uintptr_t)block, hak_region.base);
    CHECK_EQ(hak_large_usable_bytes(block, "test"), hak_region.window_bytes);
}

TEST(a_large_block_has_any_alignment_up_to_16_mib)
{
    CHECK(hak_process_start());
    for (size_t alignment = 16; alignment <= 16 * HAK_MIB; alignment *= 2)
        for (size_t bytes = 1; bytes <= 4 * HAK_MIB; bytes *= 64) {
            void *block = take_large(bytes, alignment, LARGE_ANY);
            CHECK(block != NULL);
            CHECK_EQ((uintptr_t)block % alignment, 0);
            CHECK(hak_large_usable_bytes(block, "test") >= bytes);
        }
}

TEST(a_large_block_of_no_bytes_is_a_block)
{
    CHECK(hak_process_start());
    void *first = take_large(0, 2 * HAK_GRANULE_BYTES, LARGE_ANY);
    void *second = take_large(0, 2 * HAK_GRANULE_BYTES, LARGE_ANY);
    CHECK(first != NULL && second != NULL);
    CHECK(first != second);
    CHECK_EQ((uintptr_t)first % (2 * HAK_GRANULE_BYTES), 0);
    hak_large_give(first);
    hak_large_give(second);
    CHECK_EQ(hak_large_live_bytes(), 0);
}

TEST(a_zero_block_on_used_memory_reads_as_zero)
{
    for (size_t bytes = BYTES; bytes <= 8 * HAK_MIB; bytes *= 3) {
        unsigned char *block = take(bytes);
        memset(block, 0xff, hak_large_usable_bytes(block, "test"));
        hak_large_give(block);
        block = take_large(bytes, 16, LARGE_ZERO);
        CHECK(block != NULL);
        CHECK_BYTES(block, bytes, 0);
        hak_large_give(block);
    }
    CHECK_EQ(hak_large_live_bytes(), 0);
}

/* How many bytes more are warm after the free of a block of which each `step`-th page from `from`
 * on was used. */
static size_t kept_of(size_t bytes, enum large_content content, size_t from, size_t step)
{
    char *block = take_large(bytes, 16, content);
    CHECK(block != NULL);
    for (size_t at = from; at < bytes; at += step * HAK_PAGE_BYTES_LEAST)
        block[at] = 1;
    size_t warm = hak_span_warm_bytes();
    hak_large_give_up(hak_large_end(block));
    return hak_span_warm_bytes() - warm;
}

static void start_with_all_kept(void)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    hak_store_relaxed(&hak_os_fault.huge_pages, HUGE_ON_REQUEST + 1);
}

TEST(of_long_blocks_that_began_as_zeros_only_filled_ones_stay_warm)
{
    if (HAK_CHECK_LEVEL < 2)
        SKIP("the machine's huge pages decide");
    start_with_all_kept();
    CHECK_EQ(kept_of(16 * HAK_MIB, LARGE_ZERO, 0, 50), 0);
    CHECK(kept_of(16 * HAK_MIB, LARGE_ANY, 0, 50) >= 16 * HAK_MIB);
    CHECK(kept_of(32 * HAK_MIB, LARGE_ZERO, 0, 1) >= 16 * HAK_MIB);
    CHECK(kept_of(64 * HAK_MIB, LARGE_ANY, 0, 50) >= 16 * HAK_MIB);
    CHECK(hak_span_heap_is_sound());
}

TEST(a_long_block_that_began_as_zeros_stays_warm_where_only_its_start_was_not_filled)
{
    if (HAK_CHECK_LEVEL < 2)
        SKIP("the machine's huge pages decide");
    start_with_all_kept();
    CHECK(kept_of(32 * HAK_MIB, LARGE_ZERO, HAK_MIB, 1) >= 32 * HAK_MIB);
}

TEST(where_free_memory_is_to_stay_so_does_that_of_sparse_blocks)
{
    if (HAK_CHECK_LEVEL < 2)
        SKIP("the machine's huge pages decide");
    start_with_all_kept();
    hak_store_relaxed(&hak_policy.free_policy, POLICY_FREE_KEEP);
    CHECK(kept_of(32 * HAK_MIB, LARGE_ZERO, 0, 50) >= 32 * HAK_MIB);
}

TEST(a_block_shrinks_where_it_stands_and_gives_back_the_rest)
{
    unsigned char *block = take(10 * HAK_GRANULE_BYTES);
    take(1);
    memset(block, 5, 10 * HAK_GRANULE_BYTES);
    CHECK(hak_large_resize(block, BYTES));
    CHECK(hak_large_usable_bytes(block, "test") >= BYTES);
    CHECK(hak_large_usable_bytes(block, "test") < BYTES + HAK_GRANULE_BYTES);
    CHECK(hak_span_warm_bytes() >= 6 * HAK_GRANULE_BYTES);
    CHECK_BYTES(block, BYTES, 5);
    CHECK(hak_span_heap_is_sound());
}

TEST(a_block_grows_where_it_stands_if_what_follows_is_free)
{
    unsigned char *block = take(BYTES), *next = take(BYTES), *wall = take(BYTES);
    memset(block, 6, BYTES);
    size_t live = hak_large_live_bytes();
    CHECK(!hak_large_resize(block, 2 * BYTES));
    CHECK_EQ(hak_large_live_bytes(), live);
    CHECK(hak_large_usable_bytes(block, "test") >= BYTES);
    hak_large_give(next);
    CHECK(hak_large_resize(block, 2 * BYTES));
    CHECK(hak_large_usable_bytes(block, "test") >= 2 * BYTES);
    CHECK(block + hak_large_usable_bytes(block, "test") <= wall);
    CHECK_EQ(block[BYTES - 1], 6);
    memset(block, 7, hak_large_usable_bytes(block, "test"));
    CHECK(hak_span_heap_is_sound());
    hak_large_give(block);
    hak_large_give(wall);
    CHECK_EQ(hak_large_live_bytes(), 0);
}

TEST(a_block_at_the_end_of_the_window_grows_with_it)
{
    unsigned char *block = take(BYTES);
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    CHECK(hak_large_resize(block, 2 * committed));
    CHECK(hak_load_relaxed(&hak_region.committed_bytes) >= 2 * committed);
    block[2 * committed - 1] = 1;
    CHECK(hak_span_heap_is_sound());
    hak_large_give(block);
    CHECK_EQ(hak_span_warm_bytes() + hak_span_clean_bytes(),
             hak_load_relaxed(&hak_region.committed_bytes));
}

TEST(a_block_does_not_grow_beyond_the_window)
{
    unsigned char *block = take(BYTES);
    take(BYTES);
    CHECK(!hak_large_resize(block, hak_region.window_bytes));
    CHECK(!hak_large_resize(block, SIZE_MAX / 2));
    CHECK(hak_large_usable_bytes(block, "test") >= BYTES);
    CHECK_EQ(take_large(hak_region.window_bytes + 1, 16, LARGE_ANY), NULL);
    CHECK_EQ(take_large(BYTES, hak_region.window_bytes * 2, LARGE_ANY), NULL);
}

TEST(warm_memory_beyond_what_was_ever_needed_leaves_at_once)
{
    CHECK(hak_process_start()); /* which sets what the price of memory says */
    hak_store_relaxed(&hak_policy.big_cache_slack_bytes, 4 * HAK_MIB);
    hak_store_relaxed(&hak_policy.big_cache_slack_percent, 0);
    size_t bytes = 8 * HAK_MIB, peak = 0;
    unsigned char *block = take(bytes);
    for (int i = 0; i < 6; i++) {
        unsigned char *next = take(bytes + bytes / 2);
        peak = hak_large_live_bytes();
        CHECK(hak_large_live_bytes() + hak_span_warm_bytes() <= peak + 4 * HAK_MIB);
        hak_large_give(block);
        block = next;
        bytes += bytes / 2;
    }
    CHECK(hak_load_relaxed(&hak_stat_globals.spans_evicted_bytes) > 0);
    CHECK(hak_span_heap_is_sound());
}

TEST(what_was_needed_before_stays_warm)
{
    unsigned char *blocks[10];
    for (int i = 0; i < 10; i++)
        blocks[i] = take(10 * HAK_MIB);
    for (int round = 0; round < 100; round++)
        for (int i = round % 3; i < 10; i += 2) {
            hak_large_give(blocks[i]);
            blocks[i] = take((size_t)(1 + (round + i) % 10) * HAK_MIB);
        }
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.spans_evicted_bytes), 0);
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.purged_bytes), 0);
}

TEST(what_superslabs_left_just_now_stays_warm)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.decay_ms, 1000000);
    hak_store_relaxed(&hak_policy.big_cache_slack_bytes, 4 * HAK_MIB);
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    struct granule_range ranges[8];
    bool is_zero;
    for (int i = 0; i < 8; i++)
        ranges[i] = hak_span_detach(
            hak_span_take(HAK_SUPERSLAB_GRANULES, HAK_SUPERSLAB_GRANULES, &is_zero));
    for (int i = 0; i < 8; i++)
        hak_span_give(hak_span_attach(ranges[i]));
    CHECK_EQ(hak_span_warm_bytes(), 8 * HAK_SUPERSLAB_BYTES);
    hak_large_give(take(HAK_MIB));
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.spans_evicted_bytes), 0);
    hak_store_relaxed(&hak_policy.decay_ms, 0);
    hak_large_give(take(HAK_MIB));
    CHECK(HAK_SUPERSLAB_BYTES < HAK_MIB || /* of tiny builds: the slack is larger */
          hak_load_relaxed(&hak_stat_globals.spans_evicted_bytes) > 0);
}

TEST(a_zero_block_on_locked_memory_reads_as_zero)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer ignores mlock");
    unsigned char *block = take(3 * HAK_MIB);
    memset(block, 0xff, 3 * HAK_MIB);
    if (mlock2(hak_granule_address(hak_granule_of(block)), 3 * HAK_MIB, MLOCK_ONFAULT) != 0)
        SKIP("too little memory may be locked");
    hak_large_give(block);
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX); /* refused before Linux 5.18 */
    unsigned char *again = take_large(3 * HAK_MIB, 16, LARGE_ZERO);
    CHECK_BYTES(again, 3 * HAK_MIB, 0);
}

TEST(a_block_given_twice_is_misuse)
{
    unsigned char *block = take(BYTES);
    hak_large_give(block);
    CHECK_REPORTS(hak_large_give(block), "invalid free", "no block is live there");
}

TEST(the_inside_of_a_block_is_misuse)
{
    unsigned char *block = take(BYTES);
    CHECK_ABORTS(hak_large_give(block + 16), "not the start of the block");
    CHECK_ABORTS(hak_large_give(block + 2 * HAK_GRANULE_BYTES), "no block is live there");
    CHECK_ABORTS(hak_large_usable_bytes(block + 8, "said so"), "hakmem: said so: pointer 0x");
    CHECK_ABORTS(hak_large_resize(block + 8, 2 * BYTES), "invalid realloc");
}
