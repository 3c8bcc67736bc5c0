/* SPDX-License-Identifier: MIT */
#include "cache/thread_cache.h"

#include "cache/flush.h"
#include "cache/growth.h"
#include "cache/heaps.h"
#include "cache/order.h"
#include "cache/sweep.h"
#include "observe/decision.h"
#include "policy/policy_table.h"

/* What a bin may hold while its class shrinks. */
#define DRAINED_SLOTS ((uint32_t)hak_least(31, HAK_MAGAZINE_SLOTS_MOST - 1))

void hak_cache_start(struct thread_cache *cache)
{
    cache->hot.base = hak_region.base;
    cache->hot.committed_bytes = hak_load_relaxed(&hak_region.committed_bytes);
    cache->hot.tags = hak_region.tags;
    cache->hot.is_heap = 1;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        cache->hot.bins[i] = (struct bin){&cache->sentinel, &cache->sentinel};
        hak_growth_begin(&cache->magazines[i]);
    }
}

/* Sends the `count` oldest blocks of a bin home. */
static void flush_oldest(struct thread_cache *cache, uint32_t class_index, uint32_t count)
{
    struct magazine *magazine = &cache->magazines[class_index];
    struct bin *bin = &cache->hot.bins[class_index];
    void *blocks[HAK_FLUSH_BLOCKS_MOST];
    for (uint32_t taken = HAK_FLUSH_BLOCKS_MOST; count > 0 && taken == HAK_FLUSH_BLOCKS_MOST;
         count -= taken) {
        taken = hak_magazine_take_oldest(magazine, bin, blocks,
                                         (uint32_t)hak_least(count, HAK_FLUSH_BLOCKS_MOST));
        hak_flush(blocks, taken, class_index, &cache->stats);
    }
}

/* What its bins hold of the class may pin pages that could go back. */
static bool class_is_sparse(uint32_t class_index)
{
    const struct heap *heap = hak_heap_near();
    return heap != NULL && hak_heap_class_is_sparse(heap, class_index);
}

/* The class shrinks, block by block all over its slabs: what its bin holds would pin pages that
 * could go back. It all goes home, and the bin starts small again; only misses let it grow. */
static void drain(struct thread_cache *cache, uint32_t class_index)
{
    struct magazine *magazine = &cache->magazines[class_index];
    struct bin *bin = &cache->hot.bins[class_index];
    flush_oldest(cache, class_index, hak_magazine_count(magazine, bin));
    hak_growth_shrink(cache, class_index, (uint32_t)hak_least(magazine->capacity, DRAINED_SLOTS));
    hak_stat_add(&cache->stats, magazines_drained, 1);
    hak_decide(drain_bin, hak_size_classes[class_index].block_bytes);
}

void hak_cache_flush(struct thread_cache *cache, uint32_t class_index)
{
    struct magazine *magazine = &cache->magazines[class_index];
    hak_stat_add(&cache->stats, flushes, 1);
    if (hak_size_classes[class_index].block_bytes < HAK_LARGE_BIN_BLOCK_BYTES &&
        magazine->slots != NULL && class_is_sparse(class_index)) {
        drain(cache, class_index);
        return;
    }
    if (hak_growth_note_miss(cache, class_index))
        return;
    struct bin *bin = &cache->hot.bins[class_index];
    uint32_t held = hak_magazine_count(magazine, bin);
    if (magazine->slots != NULL && held <= HAK_ORDER_BLOCKS_MOST &&
        hak_size_classes[class_index].block_bytes >= HAK_LARGE_BIN_BLOCK_BYTES) {
        held = hak_magazine_close(magazine, bin);
        hak_order_by_slab_use(magazine->slots + 1,
                              (uint32_t)hak_least(held, HAK_ORDER_BLOCKS_MOST));
        hak_magazine_open(magazine, bin, held);
    }
    flush_oldest(cache, class_index, (held + 1) / 2);
}

void hak_cache_flush_all(struct thread_cache *cache)
{
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        struct magazine *magazine = &cache->magazines[i];
        struct bin *bin = &cache->hot.bins[i];
        flush_oldest(cache, i, hak_magazine_count(magazine, bin));
        hak_growth_undo(cache, i);
    }
}

void hak_cache_shrink_quiet(struct thread_cache *cache, uint64_t now_ms)
{
    if (now_ms - cache->quiet_check_ms < hak_policy_read(quiet_ms))
        return;
    cache->quiet_check_ms = now_ms;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        struct magazine *magazine = &cache->magazines[i];
        struct bin *bin = &cache->hot.bins[i];
        uint32_t capacity = magazine->capacity / 2u;
        bool is_quiet = !magazine->was_missed;
        magazine->was_missed = false;
        if (class_is_sparse(i))
            flush_oldest(cache, i, hak_magazine_count(magazine, bin));
        if (!is_quiet || capacity < HAK_MAGAZINE_SLOTS_LEAST - 1)
            continue;
        uint32_t held = hak_magazine_count(magazine, bin);
        if (held > capacity)
            flush_oldest(cache, i, held - capacity);
        hak_growth_shrink(cache, i, capacity);
    }
}

bool hak_cache_is_sound(struct thread_cache *cache)
{
    size_t capacity_bytes = 0;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        const struct magazine *magazine = &cache->magazines[i];
        if (hak_magazine_count(magazine, &cache->hot.bins[i]) > magazine->capacity)
            return false;
        capacity_bytes += (size_t)magazine->capacity * hak_size_classes[i].block_bytes;
    }
    return capacity_bytes == cache->capacity_bytes;
}
