/* SPDX-License-Identifier: MIT */
#include "cache/refill.h"

#include "cache/growth.h"
#include "cache/idle.h"
#include "cache/order.h"
#include "cache/registry.h"
#include "cache/supply.h"
#include "observe/decision.h"

/* Remote frees are collected by each refill that finds no partial slab, and else by one slow
 * operation in so many: what has gathered meanwhile costs one hand-over a slab. */
#define SLOW_OPERATIONS_PER_COLLECT 4u

/* A slab with free blocks when the heap has no partial one: stages 1 (spare) to 4. */
static struct slab *find_slab(struct heap *heap, uint32_t class_index)
{
    struct slab *slab = heap->spare[class_index];
    if (slab != NULL) {
        hak_stat_add(&heap->stats, spare_slabs, 1);
        return slab;
    }
    if (!heap->owner.is_private) /* what lives in others' slabs must not be destroyed with it */
        slab = hak_registry_take_abandoned(heap, class_index);
    if (slab != NULL) {
        hak_stat_add(&heap->stats, abandoned_slabs, 1);
        hak_decide(abandoned_slab, slab->block_bytes);
        return slab;
    }
    slab = hak_supply_started_slab(class_index, &heap->owner, &heap->stats);
    if (slab == NULL && !heap->owner.is_private)
        slab = hak_idle_take(heap, class_index);
    return slab != NULL ? slab : hak_supply_slab(class_index, &heap->owner, &heap->stats);
}

/* Up to `count` blocks: all of them from partial slabs if these have any, else from one other slab.
 * Returns how many. */
static uint32_t take(struct heap *heap, uint32_t class_index, void **blocks, uint32_t count)
{
    uint32_t taken = 0;
    struct slab *slab;
    while (taken < count && (slab = hak_heap_densest(heap, class_index)) != NULL) {
        taken += hak_slab_take(slab, blocks + taken, count - taken);
        hak_heap_settle(heap, slab);
    }
    if (taken == 0 && (slab = find_slab(heap, class_index)) != NULL) {
        taken = hak_slab_take(slab, blocks, count);
        hak_heap_settle(heap, slab);
    }
    hak_use_take(heap->owner.use, class_index, taken);
    return taken;
}

void *hak_heap_take_one(struct heap *heap, uint32_t class_index, bool *is_zero)
{
    hak_heap_collect(heap);
    struct slab *slab = hak_heap_densest(heap, class_index);
    if (slab == NULL)
        slab = find_slab(heap, class_index);
    if (slab == NULL)
        return NULL;
    void *block = hak_slab_take_zero(slab);
    *is_zero = block != NULL;
    if (block == NULL)
        hak_slab_take(slab, &block, 1);
    hak_use_take(heap->owner.use, class_index, 1);
    hak_heap_settle(heap, slab);
    return block;
}

void *hak_heap_take_used(struct heap *heap, uint32_t class_index)
{
    void *block = NULL;
    hak_heap_collect(heap);
    take(heap, class_index, &block, 1);
    return block;
}

/* Blocks for the cache; what it hands out counts for the next guarded one. */
static uint32_t take_for_bin(struct thread_cache *cache, uint32_t class_index, void **blocks,
                             uint32_t count)
{
    uint32_t taken = take(&cache->heap, class_index, blocks, count);
    cache->guard_left_bytes -= (int64_t)taken * hak_size_classes[class_index].block_bytes;
    return taken;
}

void *hak_cache_refill(struct thread_cache *cache, uint32_t class_index)
{
    struct magazine *magazine = &cache->magazines[class_index];
    struct bin *bin = &cache->hot.bins[class_index];
    hak_stat_add(&cache->heap.stats, refills, 1);
    if (cache->heap.partial_mask[class_index] == 0 ||
        cache->slow_count % SLOW_OPERATIONS_PER_COLLECT == 0)
        hak_heap_collect(&cache->heap);
    hak_combine_publish_all(&cache->combine, &cache->heap.stats);
    hak_growth_note_miss(cache, class_index);
    if (magazine->slots == NULL) {
        void *block;
        return take_for_bin(cache, class_index, &block, 1) == 1 ? block : NULL;
    }
    void **slots = magazine->slots + 1;
    uint32_t count = take_for_bin(cache, class_index, slots, (magazine->capacity + 1u) / 2);
    if (count == 0)
        return NULL;
    hak_order_reverse(slots, count);
    /* The blocks are marked used before they appear in the bin. */
    hak_compiler_fence();
    bin->top = slots + count - 2;
    return slots[count - 1];
}

void *hak_cache_take_larger(struct thread_cache *cache, uint32_t class_index, uint32_t class_limit,
                            size_t alignment)
{
    hak_heap_collect(&cache->heap);
    for (uint32_t i = class_index; i < class_limit; i++) {
        if (hak_size_classes[i].block_bytes % alignment != 0)
            continue;
        void *block = hak_bin_pop(&cache->hot.bins[i]);
        if (block == NULL && (cache->heap.partial_mask[i] != 0 || cache->heap.spare[i] != NULL))
            block = hak_cache_refill(cache, i);
        if (block != NULL)
            return block;
    }
    return NULL;
}
