/* SPDX-License-Identifier: MIT */
/* tests/unit/api/maintain_test.c - free memory goes back to the kernel, in time and on demand. */
#include "api/api.h"
#include "api/tick.h"
#include "base/limits.h"
#include "cache/lifecycle.h"
#include "cache/refill.h"
#include "cache/registry.h"
#include "check.h"
#include "policy/policy_table.h"
#include "slab/depot.h"
#include "span/span_heap.h"

#define BYTES (2 * HAK_MIB)

/* What a block leaves is kept, though it was the first one. */
static void *used(size_t bytes)
{
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    void *block = hak_malloc(bytes);
    CHECK(block != NULL);
    memset(block, 1, bytes);
    return block;
}

TEST(a_purge_of_everything_gives_back_what_is_free_and_says_how_much)
{
    void *block = used(BYTES), *kept = used(BYTES);
    hak_free(block);
    size_t warm = hak_span_warm_bytes();
    CHECK(warm >= BYTES);
    CHECK_EQ(hak_maintain_purge_all(), warm);
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK_EQ(*(unsigned char *)kept, 1);
    CHECK_EQ(hak_maintain_purge_all(), 0);
}

TEST(a_purge_of_everything_reaches_empty_slabs)
{
    static void *blocks[64];
    struct heap *heap = hak_thread_heap();
    for (int i = 0; i < 64; i++)
        blocks[i] = used(60000);
    for (int i = 0; i < 64; i++)
        hak_free(blocks[i]);
    hak_gate_enter(&heap->gate);
    hak_cache_flush_all(hak_cache_of(heap));
    hak_gate_leave(&heap->gate);
    CHECK(hak_depot_warm_count() + hak_span_warm_bytes() > 0);
    CHECK(hak_maintain_purge_all() > 0);
    CHECK_EQ(hak_depot_warm_count(), 0);
    CHECK_EQ(hak_span_warm_bytes(), 0);
}

static struct heap *adopt(void)
{
    CHECK(hak_process_start());
    struct heap *heap = hak_heap_adopt();
    CHECK(heap != NULL);
    hak_gate_enter(&heap->gate);
    return heap;
}

/* Both threads have ended; the slab moved from one's heap to the other's while blocks of it were in
 * the bins of the first. */
static void leave_bins_beside_a_moved_slab(struct heap *binned, struct heap *taker)
{
    uint32_t class_index = hak_class_of(64);
    void *block = hak_cache_refill(hak_cache_of(binned), class_index);
    CHECK(block != NULL);
    hak_bin_push(&hak_cache_of(binned)->hot.bins[class_index], block);
    hak_heap_park(binned);
    CHECK(hak_registry_take_abandoned(taker, class_index) != NULL);
    hak_heap_park(taker);
}

TEST(a_purge_of_everything_reaches_blocks_in_bins_whose_slabs_moved)
{
    struct heap *early = adopt(), *late = adopt();
    leave_bins_beside_a_moved_slab(early, late);
    CHECK(hak_slab_record_count() > 0);
    hak_maintain_purge_all();
    CHECK_EQ(hak_slab_record_count(), 0);
    early = adopt(), late = adopt();
    leave_bins_beside_a_moved_slab(late, early);
    hak_maintain_trim(0);
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(a_tick_purges_what_has_been_free_longer_than_decay)
{
    void *block = used(BYTES);
    hak_store_relaxed(&hak_policy.decay_ms, 60000);
    hak_free(block);
    usleep(30000);
    hak_maintain_tick();
    CHECK(hak_span_warm_bytes() >= BYTES);
    hak_store_relaxed(&hak_policy.decay_ms, 5);
    usleep(30000);
    hak_maintain_tick();
    CHECK_EQ(hak_span_warm_bytes(), 0);
}

TEST(a_few_slow_operations_are_enough_where_they_are_rare)
{
    void *wall = used(BYTES), *block = used(BYTES), *wall_behind = used(BYTES);
    hak_store_relaxed(&hak_policy.decay_ms, 5);
    hak_store_relaxed(&hak_policy.retain_bytes, 0);
    hak_free(block);
    CHECK(hak_span_warm_bytes() >= BYTES);
    usleep(100000);
    for (int i = 0; i < HAK_SLOW_OPERATIONS_PER_LOOK; i++)
        hak_free(hak_malloc((size_t)1000 << i)); /* the first of its class takes the slow path */
    CHECK_EQ(hak_span_warm_bytes(), 0);
    hak_free(wall);
    hak_free(wall_behind);
}

TEST(a_tick_keeps_a_share_of_what_is_live)
{
    void *live = used(16 * HAK_MIB), *block = used(BYTES), *wall = used(BYTES);
    hak_store_relaxed(&hak_policy.decay_ms, 0);
    hak_free(block);
    usleep(30000);
    hak_maintain_tick();
    CHECK(hak_span_warm_bytes() >= BYTES);
    hak_store_relaxed(&hak_policy.retain_bytes, 0);
    usleep(30000);
    hak_maintain_tick();
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK(live != wall);
}

TEST(a_tick_does_nothing_when_decay_is_never)
{
    hak_store_relaxed(&hak_policy.retain_bytes, 0);
    void *block = used(BYTES);
    hak_store_relaxed(&hak_policy.decay_ms, UINT64_MAX / 2);
    hak_free(block);
    usleep(30000);
    hak_maintain_tick();
    CHECK(hak_span_warm_bytes() >= BYTES);
}
