/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/heap_test.c - bins are filled from slabs and flushed to them. */
#include "check.h"
#include "heap/flush.h"
#include "heap/growth.h"
#include "heap/heaps.h"
#include "heap/refill.h"
#include "os/os.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "slab/superslab_pool.h"
#include "slabs.h"

#define CLASS hak_class_of(64)

__attribute__((constructor(101))) static void choose(void)
{
    setenv("HAKMEM_CACHES", "thread", 1);
}

static void *blocks[8192];
static struct cache *cache;

/* This thread's cache, of a slot, and the only heap. */
static struct heap *start(void)
{
    cache = hak_thread_cache();
    CHECK(cache != NULL && !hak_cache_is_processors(cache));
    struct heap *heap = hak_heap_enter();
    CHECK(heap != NULL);
    hak_heap_leave(heap);
    return heap;
}

/* Another one. */
static struct heap *second(struct heap *heap)
{
    CHECK(hak_heap_try_enter(heap));
    struct heap *other = hak_heap_enter();
    CHECK(other != NULL && other != heap);
    hak_heap_leave(other);
    hak_heap_leave(heap);
    return other;
}

static void *take(uint32_t class_index)
{
    void *block = hak_bin_pop(class_index);
    if (block == NULL)
        block = hak_refill(cache, class_index);
    CHECK(block != NULL);
    return block;
}

static void give(uint32_t class_index, void *block)
{
    if (hak_bin_push(class_index, block))
        return;
    hak_cache_flush(cache, class_index);
    if (!hak_bin_push(class_index, block))
        hak_flush_one(hak_slab_at(block), block);
}

static uint64_t counted(const struct stat_block *stats, enum hak_stat stat)
{
    return hak_load_relaxed(&stats->counters[stat]);
}

static uint32_t bin_count(uint32_t class_index)
{
    return hak_cache_count(cache, class_index);
}

static bool is_sound(struct heap *heap)
{
    return hak_cache_is_sound(cache) && hak_heap_is_sound(heap);
}

/* A free that finds the heap busy. */
static void publish(void *block)
{
    struct slab *slab = hak_slab_at(block);
    uint32_t index = hak_slab_index_of(slab, block, "test");
    hak_remote_publish(slab, index / 64, 1ull << (index % 64));
}

TEST(a_refill_gives_a_block_and_leaves_others_in_the_bin)
{
    struct heap *heap = start();
    unsigned char *block = hak_refill(cache, CLASS);
    CHECK(block != NULL);
    CHECK(bin_count(CLASS) >= 1);
    struct slab *slab = hak_slab_at(block);
    CHECK_EQ(slab->class_index, CLASS);
    CHECK_EQ(hak_load_relaxed(&slab->owner), &heap->owner);
    CHECK_EQ(slab->used, bin_count(CLASS) + 1);
    CHECK_EQ(hak_tag_read(hak_granule_of(block)), hak_tag_of(CLASS));
    CHECK_EQ(hak_bin_pop(CLASS), block + 64); /* by rising address */
    CHECK(is_sound(heap));
}

TEST(every_class_can_be_refilled_and_flushed)
{
    struct heap *heap = start();
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        for (uint32_t k = 0; k < 20; k++)
            memset(blocks[k] = take(i), 1, hak_size_classes[i].block_bytes);
        for (uint32_t k = 0; k < 20; k++)
            give(i, blocks[k]);
        CHECK(is_sound(heap));
    }
    hak_cache_flush_all(cache);
    hak_heap_retire_spares(heap, UINT32_MAX);
    CHECK(is_sound(heap));
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(a_full_bin_flushes_the_older_half)
{
    struct heap *heap = start();
    hak_store_relaxed(&hak_policy.class_cache_bytes, 4 * HAK_KIB);
    for (uint32_t i = 0; i < 500; i++)
        blocks[i] = take(CLASS);
    hak_cache_flush_all(cache);
    uint32_t given = 0;
    while (counted(&cache->stats, HAK_STAT_flushes) == 0 || cache->rooms[CLASS].miss_count != 0)
        give(CLASS, blocks[given++]); /* until it has grown as far as it may */
    while (bin_count(CLASS) < hak_cache_capacity(cache, CLASS))
        give(CLASS, blocks[given++]);
    uint32_t held = bin_count(CLASS);
    while (bin_count(CLASS) == held)
        hak_cache_flush(cache, CLASS);
    CHECK_EQ(bin_count(CLASS), held / 2);
    for (uint32_t i = 1; i <= held / 2; i++)
        CHECK_EQ(hak_bin_pop(CLASS), blocks[given - i]);
    CHECK(is_sound(heap));
}

/* Fills the bin and flushes it; returns how many blocks stay of how many. */
static uint32_t kept_of(uint32_t class_index, uint32_t *given, uint32_t *held)
{
    while (bin_count(class_index) < hak_cache_capacity(cache, class_index))
        give(class_index, blocks[(*given)++]);
    *held = bin_count(class_index);
    hak_cache_flush(cache, class_index);
    return bin_count(class_index);
}

/* What the flushes keep of a bin that is as large as it may be, without a refill after the first
 * one: one part in so many, 0: nothing. */
static void check_kept(uint32_t class_index, uint32_t parts)
{
    uint32_t given = 0, held;
    for (uint32_t i = 0; i < 900; i++)
        blocks[i] = take(class_index);
    hak_cache_flush_all(cache);
    while (counted(&cache->stats, HAK_STAT_flushes) == 0 || !cache->rooms[class_index].is_grown)
        give(class_index, blocks[given++]);
    CHECK(kept_of(class_index, &given, &held) <= held / 2);
    for (int i = 0; i < 2; i++) {
        uint32_t kept = kept_of(class_index, &given, &held);
        CHECK_EQ(kept, parts == 0 ? 0 : held / parts);
    }
    while (bin_count(class_index) != 0)
        CHECK(hak_bin_pop(class_index) != NULL);
    CHECK(hak_refill(cache, class_index) != NULL);
    CHECK_EQ(kept_of(class_index, &given, &held), held / 2);
    CHECK(given < 900);
}

TEST(a_bin_that_only_grows_fuller_keeps_nothing_until_its_next_refill)
{
    start();
    hak_store_relaxed(&hak_policy.class_cache_bytes, 4 * HAK_KIB);
    check_kept(CLASS, 0);
}

TEST(a_bin_of_large_blocks_keeps_a_quarter_then)
{
    start();
    hak_store_relaxed(&hak_policy.large_class_cache_bytes, 64 * HAK_KIB);
    check_kept(hak_class_of(HAK_LARGE_BIN_BLOCK_BYTES + 1), 4);
}

/* Memory that nobody has used serves calloc, one block at a time. */
TEST(a_block_of_untouched_memory_counts_as_a_refill)
{
    start();
    bool is_zero = false;
    void *block = take(CLASS);
    cache->rooms[CLASS].was_flushed = true;
    CHECK(hak_take_untouched(cache, CLASS, &is_zero) != NULL);
    CHECK(is_zero);
    CHECK(!cache->rooms[CLASS].was_flushed);
    give(CLASS, block);
}

TEST(one_empty_slab_of_small_blocks_is_spare_and_serves_again)
{
    struct heap *heap = start();
    void *block = take(CLASS);
    struct slab *slab = hak_slab_at(block);
    give(CLASS, block);
    hak_cache_flush_all(cache);
    CHECK_EQ(hak_heap_spare(heap, CLASS), slab);
    CHECK_EQ(slab->place, SLAB_SPARE);
    CHECK_EQ(hak_slab_at(take(CLASS)), slab);
    CHECK_EQ(hak_heap_spare(heap, CLASS), NULL);
    CHECK_EQ(counted(&heap->stats, HAK_STAT_spare_slabs), 1);
}

/* Empties so many slabs of the class. */
static void empty_slabs(uint32_t class_index, uint32_t count)
{
    uint32_t per_slab = hak_size_classes[class_index].block_count;
    for (uint32_t i = 0; i < count * per_slab; i++)
        CHECK((blocks[i] = take(class_index)) != NULL);
    CHECK(hak_slab_record_count() >= count);
    for (uint32_t i = 0; i < count * per_slab; i++)
        give(class_index, blocks[i]);
    hak_cache_flush_all(cache);
}

TEST(empty_slabs_stay_and_serve_again_up_to_a_bound)
{
    struct heap *heap = start();
    uint32_t class_index = hak_class_of(HAK_SPARE_BLOCK_BYTES_MAX);
    uint32_t most = HAK_SPARE_GRANULES_MOST / hak_size_classes[class_index].granule_count;
    empty_slabs(class_index, most);
    CHECK_EQ(counted(&heap->stats, HAK_STAT_retired_slabs), 0);
    CHECK(is_sound(heap));
    uint64_t made = counted(&heap->stats, HAK_STAT_fresh_slabs);
    empty_slabs(class_index, most);
    CHECK_EQ(counted(&heap->stats, HAK_STAT_fresh_slabs), made);
    CHECK_EQ(counted(&heap->stats, HAK_STAT_recycled_slabs), 0);
    empty_slabs(class_index, most + 2);
    CHECK(counted(&heap->stats, HAK_STAT_retired_slabs) >= 2);
    CHECK(heap->spare_granules <= HAK_SPARE_GRANULES_MOST);
    CHECK(is_sound(heap));
    CHECK_EQ(hak_heap_retire_spares(heap, 1), 1);
    CHECK(is_sound(heap));
    hak_heap_retire_spares(heap, UINT32_MAX);
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(a_refill_takes_from_as_many_empty_slabs_as_it_needs)
{
    struct heap *heap = start();
    uint32_t class_index = hak_class_of(32 * HAK_KIB), wished = 0;
    for (int round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 64; i++)
            blocks[i] = take(class_index);
        for (uint32_t i = 0; i < 64; i++)
            give(class_index, blocks[i]);
        wished = (hak_cache_capacity(cache, class_index) + 1u) / 2;
    }
    if (HAK_BIN_SLOTS_MOST / 2 <= hak_size_classes[class_index].block_count)
        SKIP("a bin of this build holds less than a slab");
    CHECK(wished > hak_size_classes[class_index].block_count);
    hak_cache_flush_class(cache, class_index);
    CHECK(heap->spare_count[class_index] >= 2);
    CHECK(take(class_index) != NULL);
    CHECK_EQ(hak_cache_count(cache, class_index), wished - 1);
    CHECK(is_sound(heap));
}

TEST(under_a_limit_one_empty_slab_of_small_blocks_stays)
{
    struct heap *heap = start();
    hak_store_relaxed(&hak_policy.limit_bytes, 1024 * HAK_MIB);
    uint32_t class_index = hak_class_of(HAK_SPARE_BLOCK_BYTES_MAX);
    empty_slabs(class_index, 4);
    CHECK_EQ(heap->spare_count[class_index], 0);
    empty_slabs(CLASS, 4);
    CHECK_EQ(heap->spare_count[CLASS], 1);
    CHECK_EQ(hak_slab_record_count(), 1);
}

TEST(above_the_soft_limit_no_more_empty_slabs_stay_than_under_a_limit)
{
    struct heap *heap = start();
    uint32_t class_index = hak_class_of(HAK_SPARE_BLOCK_BYTES_MAX);
    hak_store_relaxed(&hak_policy.soft_limit_bytes, 1024 * HAK_MIB);
    empty_slabs(class_index, 4);
    CHECK_EQ(heap->spare_count[class_index], 4);
    hak_heap_retire_spares(heap, UINT32_MAX);
    hak_store_relaxed(&hak_policy.soft_limit_bytes, 1);
    empty_slabs(class_index, 4);
    CHECK_EQ(heap->spare_count[class_index], 0);
}

/* Whatever their class: before granules that nobody has touched. */
TEST(empty_slabs_of_one_class_serve_another_before_clean_granules)
{
    struct heap *heap = start();
    uint32_t class_index = hak_class_of(HAK_SPARE_BLOCK_BYTES_MAX);
    empty_slabs(class_index, 1);
    uint64_t fresh = counted(&heap->stats, HAK_STAT_fresh_slabs);
    CHECK(!hak_supply_is_dry(CLASS, &heap->owner));
    CHECK(hak_supply_is_cold(CLASS, &heap->owner));
    take(CLASS);
    CHECK_EQ(counted(&heap->stats, HAK_STAT_fresh_slabs), fresh);
    CHECK_EQ(counted(&heap->stats, HAK_STAT_recycled_slabs), 1);
    CHECK_EQ(heap->spare_granules, 0);
}

TEST(empty_slabs_of_one_class_serve_another_before_a_superslab_is_added)
{
    start();
    uint32_t class_index = hak_class_of(HAK_SPARE_BLOCK_BYTES_MAX);
    empty_slabs(class_index, HAK_SPARE_GRANULES_MOST / hak_size_classes[class_index].granule_count);
    uint32_t superslabs = hak_pool_superslab_count();
    uint32_t count = HAK_SPARE_GRANULES_MOST / 2 * hak_size_classes[CLASS].block_count;
    for (uint32_t i = 0; i < count; i++)
        CHECK(take(CLASS) != NULL);
    CHECK(hak_pool_superslab_count() <= superslabs);
}

TEST(empty_slabs_of_all_heaps_are_given_up)
{
    struct heap *heap = start(), *other = second(heap);
    void *block = take(CLASS); /* its slab serves the other heap, too */
    CHECK(hak_heap_try_enter(other));
    CHECK(hak_heap_try_enter(heap));
    struct slab *slab = hak_heap_surrender(heap, CLASS);
    CHECK(slab != NULL && hak_heap_receive(other, slab));
    hak_heap_leave(heap);
    hak_heap_leave(other);
    give(CLASS, block);
    hak_cache_flush_all(cache);
    CHECK_EQ(other->spare_count[CLASS], 1);
    CHECK_EQ(heap->spare_granules, 0);
    CHECK(hak_heaps_give_up_spares());
    CHECK_EQ(other->spare_count[CLASS], 0);
    CHECK_EQ(hak_load_relaxed(&hak_spare_granules), 0);
    CHECK(!hak_heaps_give_up_spares());
}

TEST(empty_slabs_serve_large_blocks_before_memory_is_added)
{
    struct heap *heap = start();
    uint32_t class_index = hak_class_of(HAK_SPARE_BLOCK_BYTES_MAX);
    empty_slabs(class_index, HAK_SPARE_GRANULES_MOST / hak_size_classes[class_index].granule_count);
    CHECK(heap->spare_granules != 0);
    void *block = hak_take_large(NULL, HAK_SUPERSLAB_BYTES, 1, LARGE_ANY);
    CHECK(block != NULL);
    CHECK_EQ(heap->spare_granules, 0);
    hak_large_give(block);
}

TEST(a_block_can_be_returned_past_the_bin)
{
    struct heap *heap = start();
    void *block = take(CLASS), *other = take(CLASS);
    struct slab *slab = hak_slab_at(block);
    hak_cache_flush_all(cache);
    CHECK_EQ(slab->used, 2);
    hak_heap_give(heap, slab, block);
    CHECK_EQ(slab->used, 1);
    CHECK_EQ(slab->place, SLAB_PARTIAL);
    CHECK_ABORTS(hak_heap_give(heap, slab, block), "double free");
    hak_heap_give(heap, slab, other);
    CHECK_EQ(slab->place, SLAB_SPARE);
    CHECK(is_sound(heap));
}

TEST(the_fullest_slab_serves_first)
{
    struct heap *heap = start();
    uint32_t per_slab = hak_size_classes[CLASS].block_count;
    for (uint32_t i = 0; i < 2 * per_slab; i++)
        blocks[i] = take(CLASS);
    hak_cache_flush_all(cache);
    struct slab *fuller = hak_slab_at(blocks[0]), *emptier = hak_slab_at(blocks[2 * per_slab - 1]);
    CHECK(fuller != emptier);
    uint32_t given = 0;
    for (uint32_t i = 0; i < 2 * per_slab; i++)
        if (hak_slab_at(blocks[i]) == emptier && given++ < per_slab - 2)
            give(CLASS, blocks[i]);
    give(CLASS, blocks[0]);
    hak_cache_flush_all(cache);
    CHECK(fuller->used > emptier->used);
    CHECK_EQ(take(CLASS), blocks[0]);
    CHECK(is_sound(heap));
}

TEST(a_zero_block_comes_from_memory_that_was_never_used)
{
    struct heap *heap = start();
    unsigned char *block = take(CLASS);
    memset(block, 1, 64);
    give(CLASS, block);
    hak_cache_flush_all(cache);
    bool is_zero = false;
    unsigned char *zero = take_block_zero(heap, CLASS, &is_zero);
    CHECK(zero != NULL);
    CHECK(is_zero);
    CHECK(zero != block);
    CHECK_BYTES(zero, 64, 0);
}

TEST(a_block_of_a_larger_class_is_taken_from_what_the_heap_has)
{
    struct heap *heap = start();
    uint32_t larger = hak_class_of(112), limit = CLASS + 16;
    CHECK_EQ(hak_take_larger(cache, CLASS, limit, 16), NULL);
    void *block = take(larger);
    give(larger, block);
    CHECK_EQ(hak_take_larger(cache, CLASS, larger, 16), NULL); /* it is below the limit */
    CHECK_EQ(hak_take_larger(cache, CLASS, limit, 32), NULL);  /* 112 is no multiple of 32 */
    CHECK_EQ(hak_take_larger(cache, CLASS, limit, 16), block);
    hak_cache_flush_all(cache);
    void *other = hak_take_larger(cache, CLASS, limit, 16);
    CHECK(other != NULL && other != block);
    CHECK_EQ(hak_slab_at(other)->class_index, larger);
    CHECK_EQ(hak_slab_record_count(), 1);
    CHECK(is_sound(heap));
}

TEST(remote_frees_are_collected_at_the_next_refill)
{
    struct heap *heap = start();
    void *block = take(CLASS);
    hak_cache_flush_all(cache);
    publish(block);
    CHECK(hak_load_relaxed(&heap->owner.pending) != NULL);
    CHECK_EQ(hak_refill(cache, CLASS), block);
    CHECK_EQ(counted(&heap->stats, HAK_STAT_pending_blocks), 1);
    CHECK_EQ(counted(&heap->stats, HAK_STAT_pending_slabs), 1);
}

TEST(a_slab_whose_last_block_is_freed_remotely_is_spare)
{
    struct heap *heap = start();
    uint32_t class_index = hak_class_of(8192);
    void *block = take(class_index);
    hak_cache_flush_all(cache);
    publish(block);
    CHECK_EQ(hak_heap_spare(heap, class_index), NULL);
    hak_heap_collect(heap);
    CHECK_EQ(hak_heap_spare(heap, class_index), hak_slab_at(block));
    hak_heap_retire_spares(heap, UINT32_MAX);
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(a_surrendered_slab_changes_its_heap_and_its_blocks_return_to_it)
{
    struct heap *from = start(), *to = second(from);
    void *kept = take(CLASS), *late = take(CLASS);
    hak_cache_flush_all(cache);
    struct slab *slab = hak_slab_at(kept);
    publish(late); /* waits on the old heap's stack */
    CHECK_EQ(hak_heap_surrender(to, CLASS), NULL);
    CHECK_EQ(hak_heap_surrender(from, CLASS), slab);
    CHECK_EQ(slab->place, SLAB_NOWHERE);
    hak_heap_receive(to, slab);
    CHECK_EQ(hak_load_relaxed(&slab->owner), &to->owner);
    CHECK_EQ(hak_load_relaxed(&to->owner.use[CLASS].used_blocks), 1);
    CHECK_EQ(hak_load_relaxed(&from->owner.use[CLASS].used_blocks), 0);
    publish(kept);
    CHECK_EQ(hak_load_relaxed(&from->owner.pending), NULL);
    hak_heap_collect(to);
    CHECK_EQ(slab->used, 0);
    CHECK(is_sound(from) && is_sound(to));
}

TEST(blocks_of_many_slabs_in_a_bin_are_returned_word_by_word_when_it_is_flushed)
{
    enum { COUNT = 256 };
    struct heap *heap = start();
    for (int i = 0; i < COUNT; i++)
        blocks[i] = take(CLASS);
    hak_cache_flush_all(cache);
    CHECK_EQ(hak_load_relaxed(&heap->owner.use[CLASS].used_blocks), COUNT);
    for (int i = 0; i < COUNT; i++)
        give(CLASS, blocks[i * 37 % COUNT]);
    hak_cache_flush_all(cache);
    CHECK_EQ(hak_load_relaxed(&heap->owner.use[CLASS].used_blocks), 0);
    CHECK_EQ(counted(&cache->stats, HAK_STAT_remote_blocks), 0);
    CHECK(is_sound(heap));
}

static int by_address(const void *a, const void *b)
{
    uintptr_t first = *(const uintptr_t *)a, second = *(const uintptr_t *)b;
    return (first > second) - (first < second);
}

static void reverse(void **list, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        void *block = list[i];
        list[i] = list[count - 1 - i];
        list[count - 1 - i] = block;
    }
}

/* Takes blocks of several slabs, sorted; `swaps` neighbours change places. */
static void take_sorted(uint32_t count, uint32_t swaps)
{
    for (uint32_t i = 0; i < count; i++)
        blocks[i] = take(CLASS);
    hak_cache_flush_all(cache);
    qsort(blocks, count, sizeof *blocks, by_address);
    for (uint32_t i = 0; i < swaps; i++) {
        uint32_t at = i * 37 % (count - 1);
        void *block = blocks[at];
        blocks[at] = blocks[at + 1];
        blocks[at + 1] = block;
    }
}

TEST(neighbours_are_returned_upwards_and_downwards_across_words_and_slabs)
{
    enum { COUNT = 3000 };
    struct heap *heap = start();
    for (uint32_t swaps = 0; swaps <= 300; swaps += 100) {
        for (uint32_t is_falling = 0; is_falling <= 1; is_falling++) {
            take_sorted(COUNT, swaps);
            if (is_falling)
                reverse(blocks, COUNT);
            CHECK_EQ(hak_load_relaxed(&heap->owner.use[CLASS].used_blocks), COUNT);
            for (uint32_t at = 0, n; at < COUNT; at += n) {
                n = (uint32_t)hak_least(COUNT - at, HAK_FLUSH_BLOCKS_MOST - at % 7);
                hak_flush(blocks + at, n, CLASS, &cache->stats);
            }
            CHECK_EQ(hak_load_relaxed(&heap->owner.use[CLASS].used_blocks), 0);
            CHECK(is_sound(heap));
        }
    }
}

/* Each `step`-th block, then each of those behind them, and so on. */
static void reorder(uint32_t count, uint32_t step)
{
    static void *before[3000];
    uint32_t at = 0;
    memcpy(before, blocks, count * sizeof *blocks);
    for (uint32_t first = 0; first < step; first++)
        for (uint32_t i = first; i < count; i += step)
            blocks[at++] = before[i];
}

TEST(blocks_are_returned_in_any_order)
{
    enum { COUNT = 3000 };
    struct heap *heap = start();
    for (uint32_t step = 2; step < 2000; step = step * 3 + 1) {
        take_sorted(COUNT, 0);
        reorder(COUNT, step);
        for (uint32_t at = 0, n; at < COUNT; at += n) {
            n = (uint32_t)hak_least(COUNT - at, HAK_FLUSH_BLOCKS_MOST);
            hak_flush(blocks + at, n, CLASS, &cache->stats);
            CHECK_EQ(hak_load_relaxed(&heap->owner.use[CLASS].used_blocks), COUNT - at - n);
        }
        CHECK(is_sound(heap));
    }
}

static void flush_reordered(uint32_t step, uint32_t broken, size_t by)
{
    take_sorted(300, 0);
    reorder(300, step);
    blocks[broken] = (char *)blocks[by == 0 ? broken - 1 : broken] + by;
    hak_flush(blocks, 100, CLASS, &cache->stats);
}

TEST(a_block_among_others_in_any_order_that_is_there_twice_or_none_is_reported)
{
    start();
    for (uint32_t step = 1; step < 300; step = step * 5 + 1) {
        CHECK_ABORTS(flush_reordered(step, 1, 0), "double free");
        CHECK_ABORTS(flush_reordered(step, 50, 0), "double free");
        CHECK_ABORTS(flush_reordered(step, 50, 8), "invalid free");
    }
}

/* The first `count` blocks in rows of so many steps, each upwards and each second one downwards. */
static void flush_rows(uint32_t count, uint32_t step, uint32_t length)
{
    struct rows rows = {.count = 0};
    reorder(count, step);
    for (uint32_t at = 0, n, i = 0; at < count; at += n, i++) {
        n = (uint32_t)hak_least(length, count - at);
        if (i % 2 == 1)
            reverse(blocks + at, n);
        if (!hak_rows_add(&rows, blocks + at, n, hak_size_classes[CLASS].block_bytes))
            hak_flush(blocks + at, n, CLASS, &cache->stats);
        else if (rows.count > HAK_ROWS_MOST / 2) {
            hak_flush_rows(&rows, CLASS, &cache->stats);
            rows.count = 0;
        }
    }
    hak_flush_rows(&rows, CLASS, &cache->stats);
}

TEST(rows_are_returned_with_any_step_upwards_and_downwards)
{
    enum { COUNT = 3000 };
    struct heap *heap = start();
    for (uint32_t step = 1; step < HAK_ROW_STEP_MOST + 3; step++)
        for (uint32_t length = 127; length >= 1; length /= 3) {
            take_sorted(COUNT, 0);
            flush_rows(COUNT, step, length);
            CHECK_EQ(hak_load_relaxed(&heap->owner.use[CLASS].used_blocks), 0);
            CHECK(is_sound(heap));
        }
}

TEST(rows_are_left_at_the_door_of_a_busy_heap)
{
    struct heap *heap = start();
    take_sorted(300, 0);
    CHECK(hak_heap_try_enter(heap));
    flush_rows(300, 2, 100);
    CHECK_EQ(hak_load_relaxed(&heap->owner.use[CLASS].used_blocks), 300);
    CHECK_EQ(counted(&cache->stats, HAK_STAT_remote_blocks), 300);
    hak_heap_collect(heap);
    CHECK_EQ(hak_load_relaxed(&heap->owner.use[CLASS].used_blocks), 0);
    hak_heap_leave(heap);
}

static void flush_broken_row(uintptr_t step_bytes, uintptr_t at)
{
    struct rows rows = {.count = 1, .rows = {{(uintptr_t)blocks[at], step_bytes, 15}}};
    hak_flush_rows(&rows, CLASS, &cache->stats);
}

TEST(a_row_that_starts_no_blocks_or_free_ones_is_reported)
{
    uintptr_t block_bytes = hak_size_classes[CLASS].block_bytes;
    if (hak_size_classes[CLASS].block_count < 64)
        SKIP("slabs are too small for rows");
    start();
    take_sorted(300, 0);
    hak_flush(&blocks[12], 1, CLASS, &cache->stats);
    CHECK_ABORTS(flush_broken_row(block_bytes, 2), "double free");
    CHECK_ABORTS(flush_broken_row(-block_bytes, 22), "double free");
    CHECK_ABORTS(flush_broken_row(2 * block_bytes, 2), "double free");
    CHECK_ABORTS(flush_broken_row(block_bytes + 8, 30), "invalid free");
    CHECK_ABORTS(flush_broken_row(-(block_bytes - 8), 40), "invalid free");
    flush_broken_row(3 * block_bytes, 13);
}

TEST(a_block_among_neighbours_that_is_free_is_reported)
{
    start();
    take_sorted(300, 0);
    hak_flush(&blocks[40], 1, CLASS, &cache->stats);
    CHECK_ABORTS(hak_flush(blocks, 100, CLASS, &cache->stats), "double free");
    blocks[10] = (char *)blocks[10] + 8;
    CHECK_ABORTS(hak_flush(blocks, 20, CLASS, &cache->stats), "invalid free");
}

TEST(a_flush_leaves_blocks_at_the_door_of_a_busy_heap_and_does_not_wait)
{
    enum { COUNT = 256 };
    struct heap *heap = start();
    for (int i = 0; i < COUNT; i++)
        blocks[i] = take(CLASS);
    hak_cache_flush_all(cache);
    CHECK(hak_heap_try_enter(heap));
    for (int i = 0; i < COUNT; i++)
        hak_flush(&blocks[i], 1, CLASS, &cache->stats);
    CHECK_EQ(counted(&cache->stats, HAK_STAT_remote_blocks), COUNT);
    CHECK_EQ(hak_load_relaxed(&heap->owner.use[CLASS].used_blocks), COUNT);
    hak_heap_collect(heap);
    CHECK_EQ(hak_load_relaxed(&heap->owner.use[CLASS].used_blocks), 0);
    hak_heap_leave(heap);
    CHECK(is_sound(heap));
}

TEST(blocks_of_a_whole_word_are_left_there_with_one_publication)
{
    uint32_t count = (uint32_t)hak_least(64, hak_size_classes[CLASS].block_count);
    struct heap *heap = start();
    for (uint32_t i = 0; i < count; i++)
        blocks[i] = take(CLASS);
    hak_cache_flush_all(cache);
    CHECK(hak_heap_try_enter(heap));
    hak_flush(blocks, count, CLASS, &cache->stats);
    hak_heap_leave(heap);
    CHECK_EQ(counted(&cache->stats, HAK_STAT_remote_blocks), count);
    CHECK(counted(&cache->stats, HAK_STAT_remote_publishes) <= 2);
}

TEST(a_slab_found_on_the_stack_of_its_old_heap_is_forwarded)
{
    struct heap *from = start(), *to = second(from);
    void *first = take(CLASS), *other = take(CLASS);
    hak_cache_flush_all(cache);
    struct slab *slab = hak_heap_surrender(from, CLASS);
    publish(first); /* read its owner before the move */
    hak_heap_receive(to, slab);
    CHECK_EQ(hak_load_relaxed(&from->owner.pending), slab);
    hak_heap_collect(from);
    CHECK_EQ(slab->used, 2);
    CHECK_EQ(hak_load_relaxed(&to->owner.pending), slab);
    hak_heap_collect(to);
    CHECK_EQ(slab->used, 1);
    CHECK(other != first);
}

TEST(a_cached_block_whose_slab_moved_is_flushed_to_the_new_heap)
{
    struct heap *from = start(), *to = second(from);
    void *block = take(CLASS), *other = take(CLASS);
    hak_cache_flush_all(cache);
    give(CLASS, block);
    hak_heap_receive(to, hak_heap_surrender(from, CLASS));
    hak_cache_flush_all(cache);
    CHECK_EQ(hak_slab_at(other)->used, 1);
    CHECK(is_sound(from) && is_sound(to));
}

TEST(what_lies_free_in_another_heap_serves_before_new_memory)
{
    struct heap *from = start(), *to = second(from);
    void *block = take(CLASS), *other = take(CLASS);
    hak_cache_flush_all(cache);
    CHECK(hak_heap_try_enter(to));
    void *stolen = take_block(to, CLASS);
    CHECK_EQ(hak_slab_at(stolen), hak_slab_at(block));
    CHECK_EQ(counted(&to->stats, HAK_STAT_stolen_slabs), 1);
    CHECK_EQ(hak_slab_record_count(), 1);
    hak_heap_leave(to);
    CHECK(other != stolen);
    CHECK(is_sound(from) && is_sound(to));
}

TEST(a_heap_that_somebody_is_in_keeps_its_slabs)
{
    struct heap *from = start(), *to = second(from);
    void *block = take(CLASS);
    hak_cache_flush_all(cache);
    CHECK(hak_heap_try_enter(from) && hak_heap_try_enter(to));
    CHECK(hak_slab_at(take_block(to, CLASS)) != hak_slab_at(block));
    hak_heap_leave(to);
    hak_heap_leave(from);
}

TEST(bins_that_were_quiet_are_shrunk)
{
    if (HAK_TINY)
        SKIP("tiny bins do not grow");
    struct heap *heap = start();
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < 500; i++)
            blocks[i] = take(CLASS);
        for (uint32_t i = 0; i < 500; i++)
            give(CLASS, blocks[i]);
    }
    uint32_t capacity = hak_cache_capacity(cache, CLASS);
    uint64_t quiet_ms = hak_policy_read(quiet_ms), now = hak_os_clock_ms() + quiet_ms;
    CHECK(capacity >= 2 * HAK_BIN_SLOTS_LEAST);
    hak_cache_shrink_quiet(cache, now);
    CHECK_EQ(hak_cache_capacity(cache, CLASS), capacity); /* it was missed before */
    hak_cache_shrink_quiet(cache, now + quiet_ms - 1);
    CHECK_EQ(hak_cache_capacity(cache, CLASS), capacity); /* too soon */
    hak_cache_shrink_quiet(cache, now + quiet_ms);
    CHECK_EQ(hak_cache_capacity(cache, CLASS), capacity / 2);
    CHECK(bin_count(CLASS) <= capacity / 2);
    CHECK(is_sound(heap));
}

TEST(a_block_cached_twice_is_a_double_free_when_it_is_flushed)
{
    start();
    void *block = take(CLASS);
    hak_cache_flush_all(cache);
    give(CLASS, block);
    give(CLASS, block);
    CHECK_ABORTS(hak_cache_flush_all(cache), "double free");
}

TEST(an_audit_sees_capacity_masks_and_spares_that_lie)
{
    struct heap *heap = start();
    give(CLASS, take(CLASS));
    CHECK(is_sound(heap));
    cache->capacity_bytes++;
    CHECK(!is_sound(heap));
    cache->capacity_bytes--;
    hak_cache_flush_all(cache);
    struct slab *spare = hak_heap_spare(heap, CLASS);
    CHECK(spare != NULL);
    spare->used++;
    CHECK(!is_sound(heap));
    spare->used--;
    CHECK(is_sound(heap));
}
