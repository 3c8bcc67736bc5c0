/* SPDX-License-Identifier: MIT */
#include "cache/heap.h"

#include "base/check.h"
#include "cache/growth.h"
#include "cache/idle.h"
#include "cache/order.h"
#include "cache/registry.h"
#include "cache/supply.h"
#include "cache/sweep.h"
#include "harden/checks.h"
#include "observe/decision.h"
#include "policy/policy_table.h"
#include "span/large.h"

/* Blocks leave a bin in pieces of this many. */
#define FLUSH_PIECE 128u
/* Remote frees are collected by each refill that finds no partial slab, and else by one slow
 * operation in so many: what has gathered meanwhile costs one hand-over a slab. */
#define SLOW_OPERATIONS_PER_COLLECT 4u
/* What a bin may hold while its class shrinks. */
#define DRAINED_SLOTS ((uint32_t)hak_least(31, HAK_MAGAZINE_SLOTS_MOST - 1))

void hak_heap_start(struct heap *heap, uint32_t id)
{
    heap->cache.base = hak_region.base;
    heap->cache.committed_bytes = hak_load_relaxed(&hak_region.committed_bytes);
    heap->cache.tags = hak_region.tags;
    heap->cache.others = hak_tag_others(id);
    heap->cache.is_heap = 1;
    heap->sweep_class = HAK_CLASS_COUNT;
    heap->owner.heap_id = id;
    hak_list_start(&heap->full);
    hak_combine_start(&heap->combine);
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        heap->cache.bins[i] = (struct bin){&heap->sentinel, &heap->sentinel};
        hak_growth_begin(&heap->magazines[i]);
    }
}

static void unlist(struct heap *heap, struct slab *slab)
{
    uint32_t class_index = slab->class_index;
    if (slab->place == SLAB_PARTIAL) {
        struct list_link *list = &heap->partial[class_index][slab->octile];
        hak_list_remove(&slab->link);
        heap->partial_count[class_index]--;
        if (hak_list_is_empty(list))
            heap->partial_mask[class_index] &= (uint8_t)~(1u << slab->octile);
    } else if (slab->place == SLAB_SPARE) {
        heap->spare[class_index] = NULL;
    } else if (slab->place == SLAB_FULL) {
        hak_list_remove(&slab->link);
    }
    slab->place = SLAB_NOWHERE;
}

static void list_partial(struct heap *heap, struct slab *slab, uint32_t octile)
{
    uint32_t class_index = slab->class_index;
    struct list_link *list = &heap->partial[class_index][octile];
    if (!(heap->partial_mask[class_index] & (1u << octile)))
        hak_list_start(list); /* lists start with their first slab: most never have one */
    hak_list_insert_first(list, &slab->link);
    heap->partial_count[class_index]++;
    heap->partial_mask[class_index] |= (uint8_t)(1u << octile);
    slab->octile = (uint8_t)octile;
    slab->place = SLAB_PARTIAL;
}

/* Keeps an empty slab as the spare one of its class; false: there is one, or the class has none,
 * and the slab went to the depot. */
static bool settle_empty(struct heap *heap, struct slab *slab)
{
    if (slab->place == SLAB_SPARE)
        return true;
    unlist(heap, slab);
    if (heap->spare[slab->class_index] == NULL && slab->block_bytes < HAK_SPARE_BLOCK_BYTES_MAX) {
        heap->spare[slab->class_index] = slab;
        slab->place = SLAB_SPARE;
        return true;
    }
    hak_stat_add(&heap->stats, retired_slabs, 1);
    hak_supply_retire(slab);
    return false;
}

/* Puts a slab where it belongs after its number of free blocks changed; false: it was empty and
 * went to the depot. */
static bool settle(struct heap *heap, struct slab *slab)
{
    hak_audit(hak_slab_is_sound(slab));
    if (HAK_UNLIKELY(hak_slab_is_full(slab))) {
        unlist(heap, slab);
        if (slab->is_private) { /* who destroys the heap must find it */
            hak_list_insert_first(&heap->full, &slab->link);
            slab->place = SLAB_FULL;
        }
        return true;
    }
    if (HAK_UNLIKELY(slab->used == 0 && hak_load_relaxed(&slab->remote_count) == 0))
        return settle_empty(heap, slab);
    uint32_t octile = hak_slab_octile(slab);
    if (slab->place == SLAB_PARTIAL && slab->octile == octile)
        return true;
    unlist(heap, slab);
    list_partial(heap, slab, octile);
    return true;
}

/* The fullest partial slab of the class; NULL: there is none. */
static struct slab *densest(struct heap *heap, uint32_t class_index)
{
    uint32_t mask = heap->partial_mask[class_index];
    if (mask == 0)
        return NULL;
    return hak_list_element(heap->partial[class_index][hak_bit_highest(mask)].next, struct slab,
                            link);
}

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

/* Takes up to `count` blocks: all of them from partial slabs if these have any, else from one other
 * slab. */
static uint32_t take_blocks(struct heap *heap, uint32_t class_index, void **blocks, uint32_t count)
{
    uint32_t taken = 0;
    struct slab *slab;
    while (taken < count && (slab = densest(heap, class_index)) != NULL) {
        taken += hak_slab_take(slab, blocks + taken, count - taken);
        settle(heap, slab);
    }
    if (taken == 0 && (slab = find_slab(heap, class_index)) != NULL) {
        taken = hak_slab_take(slab, blocks, count);
        settle(heap, slab);
    }
    hak_use_take(heap->owner.use, class_index, taken);
    heap->guard_left_bytes -= (int64_t)taken * hak_size_classes[class_index].block_bytes;
    return taken;
}

/* Gives blocks of one class back to their slabs, or sends them on their way there. */
static void give_blocks(struct heap *heap, uint32_t class_index, void **blocks, uint32_t count)
{
    uint32_t own = 0, run;
    for (uint32_t i = 0; i < count; i += run) {
        struct slab *slab = hak_slab_at(blocks[i]);
        if (HAK_UNLIKELY(slab == NULL || slab->class_index != class_index))
            hak_misuse("double free", blocks[i], hak_size_classes[class_index].block_bytes,
                       "its slab is gone");
        if (hak_load_relaxed(&slab->owner) != &heap->owner) {
            run = hak_combine_add_run(&heap->combine, slab, blocks + i, count - i, &heap->stats);
        } else {
            run = hak_slab_give_run(slab, blocks + i, count - i);
            own += run;
            settle(heap, slab);
        }
    }
    hak_use_note(heap->owner.use, class_index, -(int64_t)own);
}

/* Sends the `count` oldest blocks of a bin home. */
static void flush_oldest(struct heap *heap, uint32_t class_index, uint32_t count)
{
    struct magazine *magazine = &heap->magazines[class_index];
    struct bin *bin = &heap->cache.bins[class_index];
    void *blocks[FLUSH_PIECE];
    for (uint32_t taken = FLUSH_PIECE; count > 0 && taken == FLUSH_PIECE; count -= taken) {
        taken = hak_magazine_take_oldest(magazine, bin, blocks,
                                         (uint32_t)hak_least(count, FLUSH_PIECE));
        give_blocks(heap, class_index, blocks, taken);
    }
}

void *hak_heap_refill(struct heap *heap, uint32_t class_index)
{
    struct magazine *magazine = &heap->magazines[class_index];
    struct bin *bin = &heap->cache.bins[class_index];
    hak_stat_add(&heap->stats, refills, 1);
    if (heap->partial_mask[class_index] == 0 || heap->slow_count % SLOW_OPERATIONS_PER_COLLECT == 0)
        hak_heap_collect(heap);
    hak_combine_publish_all(&heap->combine, &heap->stats);
    hak_growth_note_miss(heap, class_index);
    if (magazine->slots == NULL) {
        void *block;
        return take_blocks(heap, class_index, &block, 1) == 1 ? block : NULL;
    }
    void **slots = magazine->slots + 1;
    uint32_t count = take_blocks(heap, class_index, slots, (magazine->capacity + 1u) / 2);
    if (count == 0)
        return NULL;
    hak_order_reverse(slots, count);
    /* The blocks are marked used before they appear in the bin. */
    hak_compiler_fence();
    bin->top = slots + count - 2;
    return slots[count - 1];
}

void *hak_heap_take_larger(struct heap *heap, uint32_t class_index, uint32_t class_limit,
                           size_t alignment)
{
    hak_heap_collect(heap);
    for (uint32_t i = class_index; i < class_limit; i++) {
        if (hak_size_classes[i].block_bytes % alignment != 0)
            continue;
        void *block = hak_bin_pop(&heap->cache.bins[i]);
        if (block == NULL && (heap->partial_mask[i] != 0 || heap->spare[i] != NULL))
            block = hak_heap_refill(heap, i);
        if (block != NULL)
            return block;
    }
    return NULL;
}

void *hak_heap_take_one(struct heap *heap, uint32_t class_index, bool *is_zero)
{
    hak_heap_collect(heap);
    struct slab *slab = densest(heap, class_index);
    if (slab == NULL)
        slab = find_slab(heap, class_index);
    if (slab == NULL)
        return NULL;
    void *block = hak_slab_take_zero(slab);
    *is_zero = block != NULL;
    if (block == NULL)
        hak_slab_take(slab, &block, 1);
    hak_use_take(heap->owner.use, class_index, 1);
    settle(heap, slab);
    return block;
}

void *hak_heap_take_used(struct heap *heap, uint32_t class_index)
{
    void *block = NULL;
    hak_heap_collect(heap);
    take_blocks(heap, class_index, &block, 1);
    return block;
}

/* The class shrinks, block by block all over its slabs: what its bin holds would pin pages that
 * could go back. It all goes home, and the bin starts small again; only misses let it grow. */
static void drain(struct heap *heap, uint32_t class_index)
{
    struct magazine *magazine = &heap->magazines[class_index];
    struct bin *bin = &heap->cache.bins[class_index];
    flush_oldest(heap, class_index, hak_magazine_count(magazine, bin));
    hak_growth_shrink(heap, class_index, (uint32_t)hak_least(magazine->capacity, DRAINED_SLOTS));
    hak_stat_add(&heap->stats, magazines_drained, 1);
    hak_decide(drain_bin, hak_size_classes[class_index].block_bytes);
}

void hak_heap_flush(struct heap *heap, uint32_t class_index)
{
    struct magazine *magazine = &heap->magazines[class_index];
    hak_stat_add(&heap->stats, flushes, 1);
    if (hak_size_classes[class_index].block_bytes < HAK_LARGE_BIN_BLOCK_BYTES &&
        magazine->slots != NULL && hak_heap_class_is_sparse(heap, class_index)) {
        drain(heap, class_index);
        return;
    }
    if (hak_growth_note_miss(heap, class_index))
        return;
    struct bin *bin = &heap->cache.bins[class_index];
    uint32_t held = hak_magazine_count(magazine, bin);
    if (magazine->slots != NULL && held <= HAK_ORDER_BLOCKS_MOST &&
        hak_size_classes[class_index].block_bytes >= HAK_LARGE_BIN_BLOCK_BYTES) {
        held = hak_magazine_close(magazine, bin);
        hak_order_by_slab_use(magazine->slots + 1,
                              (uint32_t)hak_least(held, HAK_ORDER_BLOCKS_MOST));
        hak_magazine_open(magazine, bin, held);
    }
    flush_oldest(heap, class_index, (held + 1) / 2);
}

void hak_heap_give(struct heap *heap, struct slab *slab, void *block)
{
    hak_slab_give(slab, block);
    hak_use_note(heap->owner.use, slab->class_index, -1);
    settle(heap, slab);
}

size_t hak_heap_span_cache_most(void)
{
    size_t share = hak_large_peak_bytes() / 100 * hak_policy_read(span_cache_percent) /
                   (hak_registry_active_count() + 1);
    return hak_least(share, hak_policy_read(span_cache_bytes));
}

void hak_heap_drop_spans(struct heap *heap)
{
    hak_large_drop_cached(&heap->spans, UINT64_MAX, 0, 0);
}

void hak_heap_flush_all(struct heap *heap)
{
    hak_heap_drop_spans(heap);
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        struct magazine *magazine = &heap->magazines[i];
        struct bin *bin = &heap->cache.bins[i];
        flush_oldest(heap, i, hak_magazine_count(magazine, bin));
        hak_growth_undo(heap, i);
    }
    hak_combine_publish_all(&heap->combine, &heap->stats);
    hak_heap_collect(heap);
}

void hak_heap_shrink_quiet(struct heap *heap, uint64_t now_ms)
{
    if (now_ms - heap->quiet_check_ms < hak_policy_read(quiet_ms))
        return;
    heap->quiet_check_ms = now_ms;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        struct magazine *magazine = &heap->magazines[i];
        struct bin *bin = &heap->cache.bins[i];
        uint32_t capacity = magazine->capacity / 2u;
        bool is_quiet = !magazine->was_missed;
        magazine->was_missed = false;
        if (hak_heap_class_is_sparse(heap, i))
            flush_oldest(heap, i, hak_magazine_count(magazine, bin));
        if (!is_quiet || capacity < HAK_MAGAZINE_SLOTS_LEAST - 1)
            continue;
        uint32_t held = hak_magazine_count(magazine, bin);
        if (held > capacity)
            flush_oldest(heap, i, held - capacity);
        hak_growth_shrink(heap, i, capacity);
    }
}

void hak_heap_collect(struct heap *heap)
{
    struct slab *slab = hak_pending_take_all(&heap->owner);
    while (slab != NULL) {
        struct slab *next = hak_pending_next(slab);
        /* acquire: partner is the release in hak_heap_receive */
        if (hak_load_acquire(&slab->owner) != &heap->owner) {
            hak_pending_push(slab);
        } else {
            bool is_done;
            uint32_t count = hak_remote_collect(slab, &is_done);
            hak_stat_add(&heap->stats, pending_slabs, 1);
            hak_stat_add(&heap->stats, pending_blocks, count);
            hak_use_note(heap->owner.use, slab->class_index, -(int64_t)count);
            if (!is_done)
                hak_pending_push(slab);
            settle(heap, slab);
        }
        slab = next;
    }
}

struct slab *hak_heap_surrender(struct heap *parked, uint32_t class_index)
{
    hak_heap_collect(parked);
    struct slab *slab = densest(parked, class_index);
    if (slab == NULL)
        slab = parked->spare[class_index];
    if (slab != NULL) {
        unlist(parked, slab);
        hak_use_note_slab(parked->owner.use, class_index, -1, slab->used);
    }
    return slab;
}

bool hak_heap_receive(struct heap *heap, struct slab *slab)
{
    /* release: partner is the acquire in hak_pending_push and hak_heap_collect */
    hak_store_release(&slab->owner, &heap->owner);
    hak_tag_write(hak_granule_of((void *)slab->start), slab->granule_count,
                  hak_supply_tag(slab, &heap->owner));
    hak_use_note_slab(heap->owner.use, slab->class_index, 1, slab->used);
    return settle(heap, slab);
}

void hak_heap_retire_spare(struct heap *heap, uint32_t class_index)
{
    struct slab *slab = heap->spare[class_index];
    if (slab == NULL || hak_load_relaxed(&slab->remote_count) != 0)
        return;
    unlist(heap, slab);
    hak_stat_add(&heap->stats, retired_slabs, 1);
    hak_supply_retire(slab);
}

void hak_heap_retire_spares(struct heap *heap)
{
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++)
        hak_heap_retire_spare(heap, i);
}

size_t hak_heap_free_bytes(const struct heap *heap)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        const struct class_use *use = &heap->owner.use[i];
        size_t blocks = hak_load_relaxed(&use->slabs) * hak_size_classes[i].block_count;
        bytes += hak_excess(blocks, hak_load_relaxed(&use->used_blocks)) *
                 hak_size_classes[i].block_bytes;
    }
    return bytes;
}

void hak_heap_tidy(struct heap *heap)
{
    hak_heap_collect(heap);
    hak_heap_retire_spares(heap);
    hak_heap_drop_spans(heap);
}
