/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/residency_test.c - each resident page belongs to one part, and all parts are
 * what the kernel says. */
#include "process/reclaim.h"
#include "unit/resident.h"
#include "unit/smaps.h"

#include "api/api.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "public.h"

#include <errno.h>

#define COUNT 20000

static void *blocks[COUNT];

static bool is_near(uint64_t value, uint64_t expected, uint64_t slack)
{
    return value + slack >= expected && value <= expected + slack;
}

static void *touched(size_t bytes)
{
    void *block = hak_malloc(bytes);
    CHECK(block != NULL);
    memset(block, 1, bytes);
    return block;
}

TEST(at_the_start_there_are_records_and_little_else)
{
    refuse_huge_pages();
    hak_free(hak_malloc(10));
    struct hakmem_residency at = check_residency_adds_up();
    CHECK(at.metadata_bytes > 0);
    CHECK(at.live_bytes + at.retained_bytes + at.pinned_bytes < 256 * HAK_KIB);
}

TEST(large_blocks_are_live_where_they_were_touched_and_untouched_elsewhere)
{
    refuse_huge_pages();
    char *block = hak_malloc(40 * HAK_MIB);
    memset(block, 1, 10 * HAK_MIB);
    struct hakmem_residency at = check_residency_adds_up();
    CHECK(is_near(at.live_bytes, 10 * HAK_MIB, 128 * HAK_KIB));
    CHECK(is_near(at.untouched_bytes, 30 * HAK_MIB, 256 * HAK_KIB));
    hak_free(block);
    at = check_residency_adds_up();
    CHECK(is_near(at.retained_bytes, 10 * HAK_MIB, 128 * HAK_KIB));
    CHECK(at.untouched_bytes < 128 * HAK_KIB);
    hak_reclaim_purge_all();
    CHECK(check_residency_adds_up().retained_bytes < 64 * HAK_KIB);
}

TEST(small_blocks_pin_the_pages_that_they_lie_on)
{
    if (HAK_TINY)
        SKIP("the blocks of a tiny slab fill one page");
    refuse_huge_pages();
    for (int i = 0; i < COUNT; i++)
        blocks[i] = touched(256);
    struct hakmem_residency at = check_residency_adds_up();
    CHECK(is_near(at.live_bytes, COUNT * 256, 200 * HAK_KIB));
    uint64_t live_before = at.live_bytes;
    /* Of each run of four pages, the blocks of one and a half stay: half a page is pinned. */
    for (int i = 0; i < COUNT; i++)
        if (i % 64 >= 24)
            hak_free(blocks[i]);
    hak_thread_flush();
    at = check_residency_adds_up();
    CHECK_EQ(at.cached_bytes, 0);
    CHECK(is_near(at.live_bytes, live_before / 64 * 24, 100 * HAK_KIB));
    CHECK(at.pinned_bytes > COUNT * 256 / 64 * 4);
    CHECK(at.slab_free_bytes > COUNT * 256 / 64 * 16);
    CHECK(
        is_near(at.pinned_bytes + at.slab_free_bytes + at.live_bytes, live_before, 300 * HAK_KIB));
}

TEST(freed_memory_is_cached_first)
{
    refuse_huge_pages();
    for (int i = 0; i < 1000; i++)
        blocks[i] = touched(512);
    for (int i = 0; i < 100; i++)
        hak_free(blocks[i]);
    struct hakmem_residency at = check_residency_adds_up();
    CHECK(at.cached_bytes > 0);
    CHECK(at.cached_bytes <= stats_now().cached_bytes);
}

TEST(blocks_of_private_heaps_are_live_too)
{
    refuse_huge_pages();
    hakmem_heap *heap = hakmem_heap_new();
    for (int i = 0; i < 4000; i++)
        memset(hakmem_heap_malloc(heap, 1000), 1, 1000);
    memset(hakmem_heap_malloc(heap, 4 * HAK_MIB), 1, 4 * HAK_MIB);
    struct hakmem_residency at = check_residency_adds_up();
    CHECK(is_near(at.live_bytes, 4000 * 1024 + 4 * HAK_MIB, 256 * HAK_KIB));
    hakmem_heap_destroy(heap);
    CHECK(check_residency_adds_up().live_bytes < 64 * HAK_KIB);
}

TEST(memory_brought_in_by_a_huge_page_is_reported_separately)
{
    hak_store_relaxed(&hak_policy.huge_heap_superslabs, 0);
    hak_store_relaxed(&hak_policy.huge_class_bytes, 0);
    for (int i = 0; i < 3000; i++)
        blocks[i] = touched(1000);
    struct hakmem_residency at = check_residency_adds_up();
    CHECK(is_near(at.live_bytes, 3000 * 1024, 256 * HAK_KIB));
    CHECK(at.retained_bytes < 256 * HAK_KIB);
}

TEST(the_answer_is_as_long_as_the_caller_knows_it)
{
    struct hakmem_residency at[2];
    memset(at, 0xff, sizeof at);
    hak_free(hak_malloc(10));
    CHECK_EQ(hakmem_residency_get(at, 0), EINVAL);
    CHECK_EQ(hakmem_residency_get(at, 8), 0);
    CHECK(at[0].resident_bytes > 0);
    CHECK_EQ(at[0].live_bytes, UINT64_MAX);
    CHECK_EQ(hakmem_residency_get(at, sizeof at), 0);
    CHECK_EQ(at[1].busy_heap_count, 0);
}
