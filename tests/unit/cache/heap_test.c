/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/heap_test.c - bins are filled from slabs and go home to them. */
#include "cache/lifecycle.h"
#include "cache/refill.h"
#include "cache/registry.h"
#include "check.h"
#include "os/os.h"
#include "policy/policy_table.h"
#include "slab/depot.h"

#define CLASS hak_class_of(64)
#define OWNED_CLASS 2u /* of which bins take nothing but their own */

static void *blocks[4096];

/* This thread's heap, its gate held. */
static struct heap *enter(void)
{
    struct heap *heap = hak_thread_heap();
    CHECK(heap != NULL);
    hak_gate_enter(&heap->gate);
    return heap;
}

static void *take(struct heap *heap, uint32_t class_index)
{
    void *block = hak_bin_pop(&hak_cache_of(heap)->hot.bins[class_index]);
    if (block == NULL)
        block = hak_cache_refill(hak_cache_of(heap), class_index);
    CHECK(block != NULL);
    return block;
}

static void give(struct heap *heap, uint32_t class_index, void *block)
{
    struct bin *bin = &hak_cache_of(heap)->hot.bins[class_index];
    if (hak_bin_is_full(bin))
        hak_cache_flush(hak_cache_of(heap), class_index);
    if (hak_bin_is_full(bin))
        hak_heap_give(heap, hak_slab_at(block), block);
    else
        hak_bin_push(bin, block);
}

static uint64_t counted(struct heap *heap, enum hak_stat stat)
{
    return hak_load_relaxed(&heap->stats.counters[stat]);
}

static uint32_t bin_count(struct heap *heap, uint32_t class_index)
{
    return hak_magazine_count(&hak_cache_of(heap)->magazines[class_index],
                              &hak_cache_of(heap)->hot.bins[class_index]);
}

TEST(a_refill_gives_a_block_and_leaves_others_in_the_bin)
{
    struct heap *heap = enter();
    unsigned char *block = hak_cache_refill(hak_cache_of(heap), CLASS);
    CHECK(block != NULL);
    CHECK(bin_count(heap, CLASS) >= 1);
    struct slab *slab = hak_slab_at(block);
    CHECK_EQ(slab->class_index, CLASS);
    CHECK_EQ(hak_load_relaxed(&slab->owner), &heap->owner);
    CHECK_EQ(slab->used, bin_count(heap, CLASS) + 1);
    CHECK_EQ(hak_tag_read(hak_granule_of(block)), hak_tag_of(heap->owner.heap_id, CLASS));
    CHECK_EQ(hak_bin_pop(&hak_cache_of(heap)->hot.bins[CLASS]), block + 64); /* by rising address */
    CHECK(hak_cache_is_sound(hak_cache_of(heap)));
}

TEST(every_class_can_be_refilled_and_flushed)
{
    struct heap *heap = enter();
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        for (uint32_t k = 0; k < 20; k++)
            memset(blocks[k] = take(heap, i), 1, hak_size_classes[i].block_bytes);
        for (uint32_t k = 0; k < 20; k++)
            give(heap, i, blocks[k]);
        CHECK(hak_cache_is_sound(hak_cache_of(heap)));
    }
    hak_cache_flush_all(hak_cache_of(heap));
    hak_heap_retire_spares(heap);
    CHECK(hak_cache_is_sound(hak_cache_of(heap)));
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(a_full_bin_sends_the_older_half_home)
{
    struct heap *heap = enter();
    hak_store_relaxed(&hak_policy.class_cache_bytes, 4 * HAK_KIB);
    for (uint32_t i = 0; i < 500; i++)
        blocks[i] = take(heap, CLASS);
    hak_cache_flush_all(hak_cache_of(heap));
    uint32_t given = 0;
    while (counted(heap, HAK_STAT_flushes) == 0 ||
           hak_cache_of(heap)->magazines[CLASS].miss_count != 0)
        give(heap, CLASS, blocks[given++]); /* until it has grown as far as it may */
    while (!hak_bin_is_full(&hak_cache_of(heap)->hot.bins[CLASS]))
        give(heap, CLASS, blocks[given++]);
    uint32_t held = bin_count(heap, CLASS);
    void *oldest_kept = hak_cache_of(heap)->magazines[CLASS].slots[1 + (held + 1) / 2];
    void *youngest = *hak_cache_of(heap)->hot.bins[CLASS].top;
    while (bin_count(heap, CLASS) == held)
        hak_cache_flush(hak_cache_of(heap), CLASS);
    CHECK_EQ(bin_count(heap, CLASS), held / 2);
    CHECK_EQ(hak_cache_of(heap)->magazines[CLASS].slots[1], oldest_kept);
    CHECK_EQ(*hak_cache_of(heap)->hot.bins[CLASS].top, youngest);
    CHECK(hak_cache_is_sound(hak_cache_of(heap)));
}

TEST(one_empty_slab_of_small_blocks_is_spare_and_serves_again)
{
    struct heap *heap = enter();
    void *block = take(heap, CLASS);
    struct slab *slab = hak_slab_at(block);
    give(heap, CLASS, block);
    hak_cache_flush_all(hak_cache_of(heap));
    CHECK_EQ(heap->spare[CLASS], slab);
    CHECK_EQ(slab->place, SLAB_SPARE);
    CHECK_EQ(hak_slab_at(take(heap, CLASS)), slab);
    CHECK_EQ(heap->spare[CLASS], NULL);
    CHECK_EQ(counted(heap, HAK_STAT_spare_slabs), 1);
}

TEST(a_second_empty_slab_is_retired_at_once)
{
    struct heap *heap = enter();
    uint32_t count = hak_size_classes[CLASS].block_count * 2u;
    for (uint32_t i = 0; i < count; i++)
        blocks[i] = take(heap, CLASS);
    CHECK(hak_slab_record_count() >= 2);
    for (uint32_t i = 0; i < count; i++)
        give(heap, CLASS, blocks[i]);
    hak_cache_flush_all(hak_cache_of(heap));
    CHECK_EQ(hak_slab_record_count(), 1);
    CHECK(counted(heap, HAK_STAT_retired_slabs) >= 1);
    hak_heap_retire_spares(heap);
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(an_empty_slab_of_large_blocks_is_not_kept)
{
    struct heap *heap = enter();
    uint32_t class_index = hak_class_of(2 * HAK_SPARE_BLOCK_BYTES_MAX);
    void *block = hak_cache_refill(hak_cache_of(heap), class_index);
    hak_cache_flush_all(hak_cache_of(heap));
    CHECK_EQ(hak_slab_record_count(), 1);
    hak_heap_give(heap, hak_slab_at(block), block);
    CHECK_EQ(heap->spare[class_index], NULL);
    CHECK_EQ(hak_slab_record_count(), 0);
    CHECK_EQ(hak_tag_read(hak_granule_of(block)), HAK_TAG_NONE);
}

TEST(a_block_can_go_home_past_the_bin)
{
    struct heap *heap = enter();
    void *block = take(heap, CLASS), *other = take(heap, CLASS);
    struct slab *slab = hak_slab_at(block);
    hak_cache_flush_all(hak_cache_of(heap));
    CHECK_EQ(slab->used, 2);
    hak_heap_give(heap, slab, block);
    CHECK_EQ(slab->used, 1);
    CHECK_EQ(slab->place, SLAB_PARTIAL);
    CHECK_ABORTS(hak_heap_give(heap, slab, block), "double free");
    hak_heap_give(heap, slab, other);
    CHECK_EQ(slab->place, SLAB_SPARE);
    CHECK(hak_cache_is_sound(hak_cache_of(heap)));
}

TEST(the_fullest_slab_serves_first)
{
    struct heap *heap = enter();
    uint32_t per_slab = hak_size_classes[CLASS].block_count;
    for (uint32_t i = 0; i < 2 * per_slab; i++)
        blocks[i] = take(heap, CLASS);
    hak_cache_flush_all(hak_cache_of(heap));
    struct slab *fuller = hak_slab_at(blocks[0]), *emptier = hak_slab_at(blocks[2 * per_slab - 1]);
    CHECK(fuller != emptier);
    uint32_t given = 0;
    for (uint32_t i = 0; i < 2 * per_slab; i++)
        if (hak_slab_at(blocks[i]) == emptier && given++ < per_slab - 2)
            give(heap, CLASS, blocks[i]);
    give(heap, CLASS, blocks[0]);
    hak_cache_flush_all(hak_cache_of(heap));
    CHECK(fuller->used > emptier->used);
    CHECK_EQ(take(heap, CLASS), blocks[0]);
    CHECK(hak_cache_is_sound(hak_cache_of(heap)));
}

TEST(a_zero_block_comes_from_memory_that_was_never_used)
{
    struct heap *heap = enter();
    unsigned char *block = take(heap, CLASS);
    memset(block, 1, 64);
    give(heap, CLASS, block);
    hak_cache_flush_all(hak_cache_of(heap));
    bool is_zero = false;
    unsigned char *zero = hak_heap_take_one(heap, CLASS, &is_zero);
    CHECK(zero != NULL);
    CHECK(is_zero);
    CHECK(zero != block);
    for (int i = 0; i < 64; i++)
        CHECK_EQ(zero[i], 0);
}

TEST(a_block_of_a_larger_class_is_taken_from_what_the_heap_has)
{
    struct heap *heap = enter();
    uint32_t larger = hak_class_of(112), limit = CLASS + 16;
    CHECK_EQ(hak_cache_take_larger(hak_cache_of(heap), CLASS, limit, 16), NULL);
    void *block = take(heap, larger);
    give(heap, larger, block);
    CHECK_EQ(hak_cache_take_larger(hak_cache_of(heap), CLASS, larger, 16),
             NULL); /* it is below the limit */
    CHECK_EQ(hak_cache_take_larger(hak_cache_of(heap), CLASS, limit, 32),
             NULL); /* 112 is no multiple of 32 */
    CHECK_EQ(hak_cache_take_larger(hak_cache_of(heap), CLASS, limit, 16), block);
    hak_cache_flush_all(hak_cache_of(heap));
    void *other = hak_cache_take_larger(hak_cache_of(heap), CLASS, limit, 16);
    CHECK(other != NULL && other != block);
    CHECK_EQ(hak_slab_at(other)->class_index, larger);
    CHECK_EQ(hak_slab_record_count(), 1);
    CHECK(hak_cache_is_sound(hak_cache_of(heap)));
}

TEST(remote_frees_come_home_at_the_next_refill)
{
    struct heap *heap = enter();
    void *block = take(heap, CLASS);
    hak_cache_flush_all(hak_cache_of(heap));
    hak_combine_bypass(hak_slab_at(block), block);
    CHECK(hak_load_relaxed(&heap->owner.pending) != NULL);
    CHECK_EQ(hak_cache_refill(hak_cache_of(heap), CLASS), block);
    CHECK_EQ(counted(heap, HAK_STAT_pending_blocks), 1);
    CHECK_EQ(counted(heap, HAK_STAT_pending_slabs), 1);
}

TEST(a_slab_whose_last_block_comes_home_remotely_is_retired)
{
    struct heap *heap = enter();
    uint32_t class_index = hak_class_of(8192);
    void *block = take(heap, class_index);
    hak_cache_flush_all(hak_cache_of(heap));
    hak_combine_bypass(hak_slab_at(block), block);
    CHECK_EQ(hak_slab_record_count(), 1);
    hak_heap_collect(heap);
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(a_surrendered_slab_changes_owner_and_tags_and_its_blocks_come_home)
{
    struct heap *from = enter(), *to = hak_heap_adopt();
    CHECK(to != from);
    void *kept = take(from, OWNED_CLASS);
    void *late = take(from, OWNED_CLASS);
    hak_cache_flush_all(hak_cache_of(from));
    struct slab *slab = hak_slab_at(kept);
    hak_combine_bypass(slab, late); /* waits on the old owner's stack */
    CHECK_EQ(hak_heap_surrender(to, OWNED_CLASS), NULL);
    CHECK_EQ(hak_heap_surrender(from, OWNED_CLASS), slab);
    CHECK_EQ(slab->place, SLAB_NOWHERE);
    hak_heap_receive(to, slab);
    CHECK_EQ(hak_load_relaxed(&slab->owner), &to->owner);
    CHECK_EQ(hak_tag_read(hak_granule_of(kept)), hak_tag_of_owned(to->owner.heap_id, OWNED_CLASS));
    CHECK_EQ(slab->used, 1);
    hak_combine_bypass(slab, kept);
    CHECK_EQ(hak_load_relaxed(&from->owner.pending), NULL);
    hak_heap_collect(to);
    CHECK_EQ(slab->used, 0);
    CHECK(hak_cache_is_sound(hak_cache_of(from)) && hak_cache_is_sound(hak_cache_of(to)));
}

TEST(others_blocks_in_a_bin_go_home_in_runs_when_it_is_flushed)
{
    enum { COUNT = 256 };
    struct heap *own = enter(), *other = hak_heap_adopt();
    CHECK(other != own);
    give(own, CLASS, take(own, CLASS)); /* there is a magazine */
    for (int i = 0; i < COUNT; i++)
        blocks[i] = take(other, CLASS);
    hak_cache_flush_all(hak_cache_of(other));
    uint64_t own_used = hak_load_relaxed(&own->owner.use[CLASS].used_blocks);
    for (int i = 0; i < COUNT; i++)
        give(own, CLASS, blocks[i]);
    CHECK_EQ(hak_load_relaxed(&other->owner.use[CLASS].used_blocks), COUNT);
    hak_cache_flush_all(hak_cache_of(own));
    CHECK(hak_load_relaxed(&own->owner.use[CLASS].used_blocks) <= own_used);
    CHECK_EQ(counted(own, HAK_STAT_remote_blocks), COUNT);
    CHECK(counted(own, HAK_STAT_remote_publishes) <= COUNT / (HAK_TINY ? 1 : 16));
    hak_heap_collect(other);
    CHECK_EQ(hak_load_relaxed(&other->owner.use[CLASS].used_blocks), 0);
    CHECK(hak_cache_is_sound(hak_cache_of(own)) && hak_cache_is_sound(hak_cache_of(other)));
}

TEST(a_slab_found_on_the_stack_of_its_old_owner_is_forwarded)
{
    struct heap *from = enter(), *to = hak_heap_adopt();
    void *first = take(from, CLASS), *second = take(from, CLASS);
    hak_cache_flush_all(hak_cache_of(from));
    struct slab *slab = hak_heap_surrender(from, CLASS);
    hak_combine_bypass(slab, first); /* read its owner before the move */
    hak_heap_receive(to, slab);
    CHECK_EQ(hak_load_relaxed(&from->owner.pending), slab);
    hak_heap_collect(from);
    CHECK_EQ(slab->used, 2);
    CHECK_EQ(hak_load_relaxed(&to->owner.pending), slab);
    hak_heap_collect(to);
    CHECK_EQ(slab->used, 1);
    CHECK(second != first);
}

TEST(a_cached_block_whose_slab_moved_goes_home_to_the_new_owner)
{
    struct heap *from = enter(), *to = hak_heap_adopt();
    void *block = take(from, CLASS), *other = take(from, CLASS);
    hak_cache_flush_all(hak_cache_of(from));
    give(from, CLASS, block);
    hak_heap_receive(to, hak_heap_surrender(from, CLASS));
    hak_cache_flush_all(hak_cache_of(from));
    hak_heap_collect(to);
    CHECK_EQ(hak_slab_at(other)->used, 1);
    CHECK(hak_cache_is_sound(hak_cache_of(from)) && hak_cache_is_sound(hak_cache_of(to)));
}

TEST(bins_that_were_quiet_are_shrunk)
{
    if (HAK_TINY)
        SKIP("tiny bins do not grow");
    struct heap *heap = enter();
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < 500; i++)
            blocks[i] = take(heap, CLASS);
        for (uint32_t i = 0; i < 500; i++)
            give(heap, CLASS, blocks[i]);
    }
    uint32_t capacity = hak_cache_of(heap)->magazines[CLASS].capacity;
    uint64_t quiet_ms = hak_policy_read(quiet_ms), now = hak_os_clock_ms() + quiet_ms;
    CHECK(capacity >= 2 * HAK_MAGAZINE_SLOTS_LEAST);
    hak_cache_shrink_quiet(hak_cache_of(heap), now);
    CHECK_EQ(hak_cache_of(heap)->magazines[CLASS].capacity, capacity); /* it was missed before */
    hak_cache_shrink_quiet(hak_cache_of(heap), now + quiet_ms - 1);
    CHECK_EQ(hak_cache_of(heap)->magazines[CLASS].capacity, capacity); /* too soon */
    hak_cache_shrink_quiet(hak_cache_of(heap), now + quiet_ms);
    CHECK_EQ(hak_cache_of(heap)->magazines[CLASS].capacity, capacity / 2);
    CHECK(bin_count(heap, CLASS) <= capacity / 2);
    CHECK(hak_cache_is_sound(hak_cache_of(heap)));
}

TEST(a_block_cached_twice_is_a_double_free_when_it_goes_home)
{
    struct heap *heap = enter();
    void *block = take(heap, CLASS);
    hak_cache_flush_all(hak_cache_of(heap));
    give(heap, CLASS, block);
    give(heap, CLASS, block);
    CHECK_ABORTS(hak_cache_flush_all(hak_cache_of(heap)), "double free");
}

TEST(an_audit_sees_capacity_masks_and_spares_that_lie)
{
    struct heap *heap = enter();
    give(heap, CLASS, take(heap, CLASS));
    CHECK(hak_cache_is_sound(hak_cache_of(heap)));
    hak_cache_of(heap)->capacity_bytes++;
    CHECK(!hak_cache_is_sound(hak_cache_of(heap)));
    hak_cache_of(heap)->capacity_bytes--;
    hak_cache_flush_all(hak_cache_of(heap));
    CHECK(heap->spare[CLASS] != NULL);
    heap->spare[CLASS]->used++;
    CHECK(!hak_cache_is_sound(hak_cache_of(heap)));
    heap->spare[CLASS]->used--;
    CHECK(hak_cache_is_sound(hak_cache_of(heap)));
}
