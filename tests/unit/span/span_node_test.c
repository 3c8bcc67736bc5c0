/* SPDX-License-Identifier: MIT */
/* tests/unit/span/span_node_test.c - on machines with several memory nodes, spans are served from
 * memory of the thread's own. */
#include "check.h"
#include "faults.h"
#include "os/node.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "process/start.h"
#include "span/span_heap.h"
#include "span/span_purge.h"
#include "stats/counters.h"
#include "unit/span/take_large.h"

static void run_on(uint32_t node)
{
    hak_store_relaxed(&hak_os_fault.node, node);
}

/* A machine with two nodes and a process large enough to ask. */
static void start_with_nodes(uint32_t count)
{
    need_faults();
    hak_store_relaxed(&hak_os_fault.node_count, count);
    CHECK(hak_process_start());
    bool is_zero;
    struct span *large = hak_span_take((64 * HAK_MIB) >> HAK_GRANULE_SHIFT, 1, &is_zero);
    CHECK(large != NULL);
}

static struct span *take(uint32_t count)
{
    bool is_zero;
    struct span *span = hak_span_take(count, 1, &is_zero);
    CHECK(span != NULL);
    return span;
}

static uint64_t far_count(void)
{
    return hak_load_relaxed(&hak_stat_globals.spans_far);
}

TEST(a_thread_gets_warm_memory_of_its_own_node)
{
    start_with_nodes(2);
    run_on(0);
    struct span *near = take(8), *wall = take(1);
    uint32_t place = near->first;
    run_on(1);
    struct span *far = take(8), *second_wall = take(1);
    uint32_t far_place = far->first;
    CHECK_EQ(far->node, 1);
    hak_span_give(near);
    hak_span_give(far);
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(take(8)->first, far_place);
    run_on(0);
    CHECK_EQ(take(8)->first, place);
    CHECK_EQ(far_count(), 0);
    CHECK(wall != second_wall);
}

TEST(untouched_memory_is_better_than_warm_memory_of_another_node)
{
    start_with_nodes(2);
    run_on(0);
    struct span *span = take(8), *wall = take(1);
    uint32_t place = span->first;
    hak_span_give(span);
    run_on(1);
    struct span *fresh = take(8);
    CHECK(fresh->first != place);
    CHECK_EQ(fresh->node, 1);
    CHECK_EQ(far_count(), 0);
    CHECK(wall->first != fresh->first);
}

TEST(warm_memory_of_another_node_is_better_than_none)
{
    start_with_nodes(2);
    run_on(0);
    struct span *span = take(8);
    while (hak_span_clean_bytes() != 0)
        take(1);
    uint32_t place = span->first;
    hak_span_give(span);
    run_on(1);
    struct span *far = take(2);
    CHECK_EQ(far->first, place);
    CHECK_EQ(far->node, 0); /* its memory stays where it is */
    CHECK_EQ(far_count(), 1);
}

TEST(neighbours_of_two_nodes_stay_two_spans_until_they_are_purged)
{
    start_with_nodes(2);
    run_on(0);
    struct span *one = take(4);
    run_on(1);
    struct span *other = take(4), *wall = take(1);
    uint32_t place = one->first;
    CHECK_EQ(other->first, place + 4);
    hak_span_give(one);
    hak_span_give(other);
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(take(4)->first, place + 4); /* run on node 1 */
    hak_span_give(take(1));
    CHECK(hak_span_heap_is_sound());
    CHECK(hak_span_purge(UINT64_MAX, 0, UINT32_MAX) > 0);
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
    CHECK(wall->first == place + 8);
}

TEST(large_blocks_come_and_go_on_every_node_and_the_heap_stays_sound)
{
    start_with_nodes(HAK_NODES_MOST);
    void *blocks[64] = {NULL};
    uint32_t random = 7;
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t slot = (random >> 8) % 64;
        run_on((random >> 16) % HAK_NODES_MOST);
        if (blocks[slot] != NULL)
            hak_large_give(blocks[slot]);
        size_t bytes = 1 + (random >> 4) % (4 * HAK_MIB);
        blocks[slot] = take_large(bytes, 16, LARGE_ANY);
        CHECK(blocks[slot] != NULL);
        if (i % 3 == 0)
            hak_large_resize(blocks[slot], bytes / 2 + 1);
        if (i % 1000 == 0)
            CHECK(hak_span_heap_is_sound());
        if (i % 5000 == 4999)
            hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    }
    for (int i = 0; i < 64; i++)
        if (blocks[i] != NULL)
            hak_large_give(blocks[i]);
    CHECK_EQ(hak_large_live_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
}

TEST(on_one_node_nothing_is_asked)
{
    start_with_nodes(1);
    run_on(1);
    CHECK_EQ(take(4)->node, 0);
}
