/* SPDX-License-Identifier: MIT */
#include "cache/thread_cache.h"

#include "base/check.h"
#include "cache/growth.h"
#include "cache/order.h"
#include "cache/sweep.h"
#include "harden/checks.h"
#include "observe/decision.h"
#include "policy/policy_table.h"
#include "span/large.h"

/* Blocks leave a bin in pieces of this many. */
#define FLUSH_PIECE 128u
/* What a bin may hold while its class shrinks. */
#define DRAINED_SLOTS ((uint32_t)hak_least(31, HAK_MAGAZINE_SLOTS_MOST - 1))

void hak_cache_start(struct thread_cache *cache)
{
    cache->hot.base = hak_region.base;
    cache->hot.committed_bytes = hak_load_relaxed(&hak_region.committed_bytes);
    cache->hot.tags = hak_region.tags;
    cache->hot.is_heap = 1;
    hak_heap_start(&cache->heap);
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        cache->hot.bins[i] = (struct bin){&cache->sentinel, &cache->sentinel};
        hak_growth_begin(&cache->magazines[i]);
    }
}

/* Gives blocks of one class back to their slabs, or sends them on their way there. */
static void give_blocks(struct thread_cache *cache, uint32_t class_index, void **blocks,
                        uint32_t count)
{
    uint32_t run;
    for (uint32_t i = 0; i < count; i += run) {
        struct slab *slab = hak_slab_at(blocks[i]);
        if (HAK_UNLIKELY(slab == NULL || slab->class_index != class_index))
            hak_misuse("double free", blocks[i], hak_size_classes[class_index].block_bytes,
                       "its slab is gone");
        run = hak_load_relaxed(&slab->owner) == &cache->heap.owner
                  ? hak_heap_give_run(&cache->heap, slab, blocks + i, count - i)
                  : hak_combine_add_run(&cache->combine, slab, blocks + i, count - i,
                                        &cache->heap.stats);
    }
}

/* Sends the `count` oldest blocks of a bin home. */
static void flush_oldest(struct thread_cache *cache, uint32_t class_index, uint32_t count)
{
    struct magazine *magazine = &cache->magazines[class_index];
    struct bin *bin = &cache->hot.bins[class_index];
    void *blocks[FLUSH_PIECE];
    for (uint32_t taken = FLUSH_PIECE; count > 0 && taken == FLUSH_PIECE; count -= taken) {
        taken = hak_magazine_take_oldest(magazine, bin, blocks,
                                         (uint32_t)hak_least(count, FLUSH_PIECE));
        give_blocks(cache, class_index, blocks, taken);
    }
}

/* The class shrinks, block by block all over its slabs: what its bin holds would pin pages that
 * could go back. It all goes home, and the bin starts small again; only misses let it grow. */
static void drain(struct thread_cache *cache, uint32_t class_index)
{
    struct magazine *magazine = &cache->magazines[class_index];
    struct bin *bin = &cache->hot.bins[class_index];
    flush_oldest(cache, class_index, hak_magazine_count(magazine, bin));
    hak_growth_shrink(cache, class_index, (uint32_t)hak_least(magazine->capacity, DRAINED_SLOTS));
    hak_stat_add(&cache->heap.stats, magazines_drained, 1);
    hak_decide(drain_bin, hak_size_classes[class_index].block_bytes);
}

void hak_cache_flush(struct thread_cache *cache, uint32_t class_index)
{
    struct magazine *magazine = &cache->magazines[class_index];
    hak_stat_add(&cache->heap.stats, flushes, 1);
    if (hak_size_classes[class_index].block_bytes < HAK_LARGE_BIN_BLOCK_BYTES &&
        magazine->slots != NULL && hak_heap_class_is_sparse(&cache->heap, class_index)) {
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
    hak_heap_drop_spans(&cache->heap);
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        struct magazine *magazine = &cache->magazines[i];
        struct bin *bin = &cache->hot.bins[i];
        flush_oldest(cache, i, hak_magazine_count(magazine, bin));
        hak_growth_undo(cache, i);
    }
    hak_combine_publish_all(&cache->combine, &cache->heap.stats);
    hak_heap_collect(&cache->heap);
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
        if (hak_heap_class_is_sparse(&cache->heap, i))
            flush_oldest(cache, i, hak_magazine_count(magazine, bin));
        if (!is_quiet || capacity < HAK_MAGAZINE_SLOTS_LEAST - 1)
            continue;
        uint32_t held = hak_magazine_count(magazine, bin);
        if (held > capacity)
            flush_oldest(cache, i, held - capacity);
        hak_growth_shrink(cache, i, capacity);
    }
}

size_t hak_cache_spans_most(void)
{
    size_t share = hak_large_peak_bytes() / 100 * hak_policy_read(span_cache_percent) /
                   (hak_load_relaxed(&hak_active_caches) + 1);
    return hak_least(share, hak_policy_read(span_cache_bytes));
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
    return capacity_bytes == cache->capacity_bytes && hak_heap_is_sound(&cache->heap);
}
