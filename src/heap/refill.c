/* SPDX-License-Identifier: MIT */
#include "heap/refill.h"

#include "heap/growth.h"
#include "heap/heaps.h"
#include "heap/limit.h"
#include "heap/slow_clock.h"
#include "heap/supply.h"
#include "heap/wait.h"
#include "span/span_heap.h"
#include "stats/event_log.h"

/* Frees that came to a busy heap are collected by each refill that finds no partial slab, and else
 * by one in so many: what has gathered meanwhile costs one hand-over a slab. */
#define REFILLS_PER_COLLECT 4u
/* A refill brings no more. */
#define BLOCKS_MOST 256u
/* So many requests of a class that is no longer than that get blocks of a longer one; the shortest
 * classes share blocks of one step. */
#define LENT_MOST 8u
#define LENT_BYTES_MOST HAK_KIB
#define LENT_STEP 64u

/* Whether a look into a heap is worth its lock: a hint. What was brought back after a sweep may be
 * of any class. */
static bool may_have(const struct heap *heap, uint32_t class_index, uint32_t kept)
{
    return hak_word_peek(&heap->partial_count[class_index]) > kept ||
           hak_word_peek(&heap->spare_count[class_index]) != 0 ||
           hak_load_relaxed(&heap->owner.purged) != NULL;
}

/* A slab of another heap that nobody is in; NULL: none has one. Of blocks that share cache lines a
 * heap keeps one slab, lest threads on two processors write to the same lines in turn. */
static struct slab *steal(struct heap *heap, uint32_t class_index)
{
    uint32_t kept = hak_size_classes[class_index].block_bytes < HAK_CACHE_LINE_BYTES;
    uint32_t count = hak_heap_count();
    for (uint32_t i = 0; i < count; i++) {
        struct heap *from = hak_heap_at((heap->owner.heap_id + i) % count);
        if (from == heap || !may_have(from, class_index, kept) || !hak_heap_try_enter(from))
            continue;
        struct slab *slab = hak_heap_surrender(from, class_index);
        bool is_ours = slab != NULL && hak_heap_receive(heap, slab);
        hak_heap_leave(from);
        if (is_ours) {
            hak_stat_add(&heap->stats, stolen_slabs, 1);
            hak_event_log(steal_slab, slab->block_bytes);
            return slab;
        }
    }
    return NULL;
}

/* A slab of the heap with free blocks; NULL: it has none. */
static struct slab *slab_at_hand(struct heap *heap, uint32_t class_index)
{
    struct slab *slab = hak_heap_densest(heap, class_index);
    if (slab != NULL)
        return slab;
    slab = hak_heap_spare(heap, class_index);
    if (slab != NULL)
        hak_stat_add(&heap->stats, spare_slabs, 1);
    return slab;
}

/* A slab with free blocks when the heap has none at hand, of what was brought if nothing else is
 * there. */
static struct slab *find_slab(struct heap *heap, uint32_t class_index,
                              struct pool_granules *brought)
{
    struct slab *slab = NULL;
    if (!heap->owner.is_private) /* what lives in others' slabs must not be destroyed with it */
        slab = steal(heap, class_index);
    if (slab == NULL)
        slab = hak_supply_make(class_index, brought, &heap->owner, &heap->stats);
    while (slab == NULL && heap->spare_granules != 0 &&
           hak_supply_is_cold(class_index, &heap->owner) &&
           hak_heap_retire_spares(heap, HAK_SPARES_AT_ONCE) != 0)
        continue;
    return slab != NULL ? slab : hak_supply_present(class_index, &heap->owner, &heap->stats);
}

/* Up to `count` blocks: from slabs at hand if these have any, else from one other slab. Returns how
 * many. */
static uint32_t take(struct heap *heap, uint32_t class_index, void **blocks, uint32_t count,
                     struct pool_granules *brought)
{
    uint32_t taken = 0;
    struct slab *slab;
    while (taken < count && (slab = slab_at_hand(heap, class_index)) != NULL) {
        taken += hak_slab_take(slab, blocks + taken, count - taken);
        hak_heap_settle(heap, slab);
    }
    if (taken == 0 && (slab = find_slab(heap, class_index, brought)) != NULL) {
        taken = hak_slab_take(slab, blocks, count);
        hak_heap_settle(heap, slab);
    }
    hak_use_take(heap->owner.use, class_index, taken);
    return taken;
}

/* The slab that serves the next request. */
static struct slab *next_slab(struct heap *heap, uint32_t class_index,
                              struct pool_granules *brought)
{
    hak_heap_collect(heap);
    struct slab *slab = slab_at_hand(heap, class_index);
    return slab != NULL ? slab : find_slab(heap, class_index, brought);
}

static void *take_zero(struct heap *heap, uint32_t class_index, bool *is_zero,
                       struct pool_granules *brought)
{
    struct slab *slab = next_slab(heap, class_index, brought);
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

void *hak_heap_take_one(struct heap *heap, uint32_t class_index, bool *is_zero,
                        struct pool_granules *brought)
{
    if (is_zero != NULL)
        return take_zero(heap, class_index, is_zero, brought);
    void *block = NULL;
    hak_heap_collect(heap);
    take(heap, class_index, &block, 1, brought);
    return block;
}

/* Into the bin, while the heap is held: no fork finds them in between. What another thread has left
 * no room for goes back. */
static void push(struct heap *heap, struct cache *cache, uint32_t class_index, void **blocks,
                 uint32_t count)
{
    uint32_t pushed = hak_cache_push_some(cache, class_index, blocks, count);
    for (uint32_t i = 0; HAK_UNLIKELY(i < count - pushed); i++)
        hak_heap_give(heap, hak_slab_at(blocks[i]), blocks[i]);
}

typedef bool short_fn(uint32_t class_index, const struct slab_owner *owner);

/* Empty slabs are given up as long as granules are short; true: that was enough. */
static bool give_up_spares(uint32_t class_index, const struct slab_owner *owner, short_fn *is_short)
{
    bool was_enough = false;
    while (is_short(class_index, owner)) {
        if (!hak_heaps_give_up_spares())
            return false;
        was_enough = true;
    }
    return was_enough;
}

/* Before memory is added, what is free in slabs of other classes becomes granules for this one:
 * empty slabs, and those of which a few blocks in the bins of `cache`, if any, are all that is in
 * use. */
static void gather(struct cache *cache, uint32_t class_index, const struct slab_owner *owner,
                   short_fn *is_short)
{
    if (give_up_spares(class_index, owner, is_short) || cache == NULL)
        return;
    hak_cache_drain_sparse(cache, class_index);
    give_up_spares(class_index, owner, is_short);
}

/* After a heap was left in which a slab may have been made. With one heap nobody waits for it. */
static void grow_records_ahead(void)
{
    if (hak_heap_count() > 1)
        hak_supply_grow_records_ahead();
}

/* After a refill. */
static void grow_ahead(struct cache *cache, struct heap *heap, uint32_t class_index)
{
    grow_records_ahead();
    if (HAK_LIKELY(!hak_supply_is_low(class_index, &heap->owner)))
        return;
    gather(cache, class_index, &heap->owner, hak_supply_is_low);
    hak_supply_grow_ahead(class_index, &heap->owner, &heap->stats);
}

/* Blocks into the bin, and one more. Returns how many in all. */
static uint32_t fill(struct cache *cache, uint32_t class_index, void **block,
                     struct pool_granules *brought)
{
    uint32_t wished = (hak_cache_capacity(cache, class_index) + 1u) / 2;
    struct heap *heap = hak_heap_enter();
    if (HAK_UNLIKELY(heap == NULL))
        return 0;
    bool is_dry = heap->partial_mask[class_index] == 0;
    if (is_dry || heap->collect_count++ % REFILLS_PER_COLLECT == 0)
        hak_heap_collect(heap);
    void *blocks[BLOCKS_MOST];
    uint32_t taken =
        take(heap, class_index, blocks, (uint32_t)hak_clamp(wished, 1, BLOCKS_MOST), brought);
    if (taken > 1)
        push(heap, cache, class_index, blocks + 1, taken - 1);
    hak_heap_leave(heap);
    if (is_dry)
        grow_ahead(cache, heap, class_index);
    if (taken > 0)
        *block = blocks[0];
    return taken;
}

struct pool_granules hak_heap_bring(struct cache *cache, struct heap *heap, uint32_t class_index)
{
    gather(cache, class_index, &heap->owner, hak_supply_is_dry);
    return hak_supply_bring(class_index, &heap->owner, &heap->stats);
}

/* Memory for a slab of the heap that is the processor's now; false: there is none. */
static bool bring(struct cache *cache, uint32_t class_index, struct pool_granules *brought)
{
    struct heap *heap = hak_heap_near();
    if (heap == NULL)
        return false;
    *brought = hak_heap_bring(cache, heap, class_index);
    return brought->count != 0;
}

void *hak_refill(struct cache *cache, uint32_t class_index)
{
    hak_stat_add_shared(&cache->stats, refills, 1);
    if (hak_draw_is_on())
        hak_bin_draw(cache, class_index);
    hak_growth_note_miss(cache, class_index);
    cache->rooms[class_index].was_flushed = false;
    struct pool_granules brought = HAK_NO_GRANULES;
    void *block = NULL;
    uint32_t taken = fill(cache, class_index, &block, &brought);
    if (HAK_UNLIKELY(taken == 0)) {
        if (bring(cache, class_index, &brought))
            taken = fill(cache, class_index, &block, &brought);
        hak_supply_give_up(&brought);
    }
    if (hak_slow_is_clocked() && taken > 0)
        hak_slow_note_refill(cache, hak_size_classes[class_index].block_bytes);
    hak_fetch_sub_relaxed(&cache->guard_left_bytes,
                          (int64_t)taken * hak_size_classes[class_index].block_bytes);
    return block;
}

/* A block of the heap, which is entered; false: there is no slab, and memory for one must be
 * brought. */
typedef bool one_fn(struct heap *heap, uint32_t class_index, void **block, bool *is_zero,
                    struct pool_granules *brought);

static void *take_alone(struct cache *cache, uint32_t class_index, bool *is_zero, one_fn *one_of)
{
    struct pool_granules brought = HAK_NO_GRANULES;
    void *block = NULL;
    for (int turn = 0; turn < 2; turn++) {
        struct heap *heap = hak_heap_enter();
        if (heap == NULL)
            break;
        bool has_slab = one_of(heap, class_index, &block, is_zero, &brought);
        hak_heap_leave(heap);
        grow_records_ahead();
        if (has_slab || (turn == 0 && !bring(cache, class_index, &brought)))
            break;
    }
    hak_supply_give_up(&brought);
    return block;
}

static bool take_any(struct heap *heap, uint32_t class_index, void **block, bool *is_zero,
                     struct pool_granules *brought)
{
    *block = hak_heap_take_one(heap, class_index, is_zero, brought);
    return *block != NULL;
}

void *hak_take_one(uint32_t class_index, bool *is_zero)
{
    return take_alone(NULL, class_index, is_zero, take_any);
}

static bool take_untouched(struct heap *heap, uint32_t class_index, void **block, bool *is_zero,
                           struct pool_granules *brought)
{
    struct slab *slab = next_slab(heap, class_index, brought);
    if (slab == NULL)
        return false;
    *block = hak_slab_take_zero(slab);
    *is_zero = *block != NULL;
    if (*block == NULL && slab->used == 0) /* made just now: it must not go back at once */
        hak_slab_take(slab, block, 1);
    hak_use_take(heap->owner.use, class_index, *block != NULL);
    hak_heap_settle(heap, slab);
    return true;
}

void *hak_take_untouched(struct cache *cache, uint32_t class_index, bool *is_zero)
{
    cache->rooms[class_index].was_flushed = false;
    return take_alone(cache, class_index, is_zero, take_untouched);
}

static bool has_at_hand(const struct heap *heap, uint32_t class_index)
{
    return hak_word_peek(&heap->partial_mask[class_index]) != 0 ||
           hak_word_peek(&heap->spare_count[class_index]) != 0;
}

/* Four classes share pages: 16 to 64 bytes, 80 to 128, and halves of a doubling. */
static uint32_t longest_neighbour(uint32_t class_index)
{
    uint32_t bytes = hak_size_classes[class_index].block_bytes;
    uint32_t half = bytes <= 2 * LENT_STEP ? LENT_STEP : 1u << (hak_bit_highest(bytes - 1) - 1);
    return hak_class_of(hak_align_up(bytes, half));
}

uint32_t hak_refill_class(struct cache *cache, uint32_t class_index)
{
    struct room *room = &cache->rooms[class_index];
    if (HAK_LIKELY(room->lent_count >= LENT_MOST)) /* above it where two threads counted at once */
        return class_index;
    const struct heap *heap = hak_heap_near();
    bool is_short = class_index > 0 && class_index < HAK_CLASS_COUNT &&
                    hak_size_classes[class_index].block_bytes <= LENT_BYTES_MOST;
    if (!is_short || (heap != NULL && has_at_hand(heap, class_index))) {
        room->lent_count = LENT_MOST;
        return class_index;
    }
    room->lent_count++;
    return longest_neighbour(class_index);
}

/* From what is there already. */
static void *take_present(uint32_t class_index)
{
    void *block = NULL;
    struct heap *heap = hak_heap_enter();
    if (heap == NULL)
        return NULL;
    if (has_at_hand(heap, class_index) || steal(heap, class_index) != NULL)
        take(heap, class_index, &block, 1, &(struct pool_granules){.count = 0});
    hak_heap_leave(heap);
    return block;
}

/* Enters the heap, and waits for no other one if it was waited for in vain. */
static bool enter_patiently(struct heap *heap, uint32_t *patience_ms)
{
    struct cache *cache = hak_wait_begin();
    bool is_entered = hak_heap_enter_within(heap, *patience_ms);
    hak_wait_end(cache);
    if (!is_entered)
        *patience_ms = 0;
    return is_entered;
}

/* The same from any heap, though threads are inside: what they hold up is no lack of memory. */
static void *take_awaited(uint32_t class_index, uint32_t *patience_ms)
{
    void *block = NULL;
    uint32_t count = hak_heap_count();
    for (uint32_t i = 0; i < count && block == NULL; i++) {
        struct heap *heap = hak_heap_at(i);
        if (hak_load_relaxed(&heap->state) != HEAP_OPEN || !may_have(heap, class_index, 0) ||
            !enter_patiently(heap, patience_ms))
            continue;
        hak_heap_collect(heap);
        if (has_at_hand(heap, class_index))
            take(heap, class_index, &block, 1, &(struct pool_granules){.count = 0});
        hak_heap_leave(heap);
    }
    return block;
}

void *hak_take_larger(struct cache *cache, uint32_t class_index, uint32_t class_limit,
                      size_t alignment)
{
    struct heap *heap = hak_heap_enter();
    if (heap != NULL) {
        hak_heap_collect(heap);
        hak_heap_leave(heap);
    }
    for (uint32_t i = class_index; i < class_limit; i++) {
        if (hak_size_classes[i].block_bytes % alignment != 0)
            continue;
        void *block = cache == NULL ? NULL : hak_bin_pop(i);
        if (block == NULL)
            block = take_present(i);
        if (block != NULL)
            return block;
    }
    return NULL;
}

void *hak_take_last(struct cache *cache, uint32_t class_index, size_t alignment,
                    uint32_t patience_ms)
{
    uint32_t limit = hak_class_end(class_index);
    void *block = hak_take_larger(cache, class_index, limit, alignment);
    for (uint32_t i = class_index; i < limit && block == NULL; i++)
        if (hak_size_classes[i].block_bytes % alignment == 0)
            block = take_awaited(i, &patience_ms);
    return block;
}

/* A span from the span cache of the processor's own heap, or else of one near; NULL: none, or the
 * heap is busy. */
static struct span *find_span(struct heap *own, const struct large_request *request)
{
    struct heap *heap = own != NULL ? own : hak_heap_near();
    if (heap == NULL || !hak_large_fits_cache(request))
        return NULL;
    struct span *span = own == NULL ? NULL : hak_large_find_recent(&own->spans, request);
    if (span != NULL || hak_load_relaxed(&heap->spans.count) == 0 || !hak_heap_try_enter(heap))
        return span;
    span = hak_large_find(&heap->spans, request);
    hak_heap_leave(heap);
    return span;
}

/* Slabs that are free, or nearly so, serve a large block before memory that nobody has used. */
static void gather_spans(struct cache *cache, size_t bytes)
{
    if (cache != NULL && hak_span_warm_bytes() < bytes)
        hak_cache_drain_sparse(cache, HAK_CLASS_NONE);
    while (hak_heaps_give_up_spares())
        continue;
}

void *hak_take_large(struct cache *cache, size_t bytes, size_t alignment,
                     enum large_content content)
{
    if (!hak_limit_admits(bytes))
        return NULL;
    struct large_request request = hak_supply_request(bytes, alignment, content);
    struct heap *own = hak_heap_own();
    if (HAK_LIKELY(own != NULL))
        request.heap_id = own->owner.heap_id;
    struct span *span = find_span(own, &request);
    if (span == NULL)
        gather_spans(cache, bytes);
    void *block = hak_supply_large(span, &request);
    if (hak_slow_is_clocked() && block != NULL)
        hak_slow_note_large(bytes);
    return block;
}
