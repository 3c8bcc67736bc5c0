/* SPDX-License-Identifier: MIT */
#include "heap/heap.h"

#include "base/check.h"
#include "heap/limit.h"
#include "heap/supply.h"
#include "policy/policy_table.h"
#include "span/large.h"

_Atomic uint32_t hak_spare_granules;

hak_static_assert(HAK_SPARE_GRANULES_MOST <= UINT16_MAX, "spare_count counts empty slabs");

void hak_heap_start(struct heap *heap)
{
    heap->lock = (struct hak_lock)HAK_LOCK_START_WITH(HAK_LOCK_HEAP);
    hak_heap_end_sweeps(heap);
    hak_list_start(&heap->full);
}

void hak_heap_end_sweeps(struct heap *heap)
{
    for (uint32_t i = 0; i < SWEEPS; i++)
        hak_heap_sweep_begin(&heap->sweeps[i], HAK_ALL_CLASS_COUNT);
}

void hak_heap_sweep_past(struct heap *heap, struct sweep_place *place)
{
    const struct slab *slab = place->slab;
    struct list_link *list = &heap->partial[slab->class_index][slab->fullness_bucket];
    struct list_link *next = slab->link.next;
    place->slab = next == list ? NULL : hak_list_element(next, struct slab, link);
    place->fullness_bucket = slab->fullness_bucket + (next == list ? 1u : 0u);
}

static void count_partial(struct heap *heap, uint32_t class_index, uint32_t slabs)
{
    hak_word_publish(&heap->partial_count[class_index], heap->partial_count[class_index] + slabs);
}

static void set_mask(struct heap *heap, uint32_t class_index, uint32_t mask)
{
    hak_word_publish(&heap->partial_mask[class_index], (uint8_t)mask);
}

static void count_spare(struct heap *heap, const struct slab *slab, uint32_t slabs)
{
    uint16_t *count = &heap->spare_count[slab->class_index];
    hak_word_publish(count, (uint16_t)(*count + slabs));
    hak_word_publish(&heap->spare_granules, heap->spare_granules + slabs * slab->granule_count);
    hak_fetch_add_relaxed(&hak_spare_granules, slabs * slab->granule_count);
}

static void unlist(struct heap *heap, struct slab *slab)
{
    uint32_t class_index = slab->class_index;
    if (slab->place == SLAB_PARTIAL) {
        for (uint32_t i = 0; i < SWEEPS; i++)
            if (HAK_UNLIKELY(heap->sweeps[i].slab == slab))
                hak_heap_sweep_past(heap, &heap->sweeps[i]);
        struct list_link *list = &heap->partial[class_index][slab->fullness_bucket];
        hak_list_remove(&slab->link);
        count_partial(heap, class_index, -1u);
        if (hak_list_is_empty(list))
            set_mask(heap, class_index,
                     heap->partial_mask[class_index] & ~(1u << slab->fullness_bucket));
    } else if (slab->place == SLAB_SPARE) {
        hak_list_remove(&slab->link);
        count_spare(heap, slab, -1u);
    } else if (slab->place == SLAB_FULL) {
        hak_list_remove(&slab->link);
    }
    slab->place = SLAB_NOWHERE;
    slab->settled_from = SLAB_UNSETTLED;
}

/* The fewest used blocks of a slab in that bucket that is not empty. */
static uint32_t fewest_used(const struct slab *slab, uint32_t fullness_bucket)
{
    uint32_t scale = slab->fullness_scale;
    return (uint32_t)hak_most(1, ((fullness_bucket << 16) + scale - 1) / scale);
}

static void list_partial(struct heap *heap, struct slab *slab, uint32_t fullness_bucket)
{
    uint32_t class_index = slab->class_index;
    struct list_link *list = &heap->partial[class_index][fullness_bucket];
    if (!(heap->partial_mask[class_index] & (1u << fullness_bucket)))
        hak_list_start(list); /* lists start with their first slab: most never have one */
    hak_list_insert_first(list, &slab->link);
    count_partial(heap, class_index, 1);
    set_mask(heap, class_index, heap->partial_mask[class_index] | 1u << fullness_bucket);
    slab->fullness_bucket = (uint8_t)fullness_bucket;
    slab->place = SLAB_PARTIAL;
    slab->settled_from = fewest_used(slab, fullness_bucket);
}

/* Whether an empty slab stays. Those of all heaps are given up before memory is taken from
 * elsewhere; those of a user heap serve nobody else. What limits may have purged is no slab. */
static bool may_keep(const struct heap *heap, const struct slab *slab)
{
    if (heap->spare_count[slab->class_index] == 0 && slab->block_bytes < HAK_SPARE_BLOCK_BYTES_MAX)
        return true;
    return !slab->is_private &&
           heap->spare_granules + slab->granule_count <= HAK_SPARE_GRANULES_MOST &&
           hak_policy_read(limit_bytes) == 0 && !hak_limit_is_passed();
}

static void retire(struct heap *heap, struct slab *slab)
{
    hak_stat_add(&heap->stats, retired_slabs, 1);
    hak_supply_retire(slab);
}

/* Keeps an empty slab, or gives it to the pool; false: that. */
static bool settle_empty(struct heap *heap, struct slab *slab)
{
    if (slab->place == SLAB_SPARE)
        return true;
    unlist(heap, slab);
    if (!may_keep(heap, slab)) {
        retire(heap, slab);
        return false;
    }
    struct list_link *list = &heap->spares[slab->class_index];
    if (heap->spare_count[slab->class_index] == 0)
        hak_list_start(list); /* as above */
    hak_list_insert_first(list, &slab->link);
    count_spare(heap, slab, 1);
    slab->place = SLAB_SPARE;
    return true;
}

bool hak_heap_settle(struct heap *heap, struct slab *slab)
{
    hak_audit(hak_slab_is_sound(slab));
    if (HAK_UNLIKELY(slab->place == SLAB_OUT))
        return true;
    if (HAK_UNLIKELY(hak_slab_is_full(slab))) {
        unlist(heap, slab);
        if (slab->is_private) { /* heap_destroy must find it */
            hak_list_insert_first(&heap->full, &slab->link);
            slab->place = SLAB_FULL;
        }
        return true;
    }
    if (HAK_UNLIKELY(slab->used == 0 && hak_load_relaxed(&slab->remote_count) == 0))
        return settle_empty(heap, slab);
    uint32_t fullness_bucket = hak_slab_fullness_bucket(slab);
    if (slab->place == SLAB_PARTIAL && slab->fullness_bucket == fullness_bucket)
        return true;
    unlist(heap, slab);
    list_partial(heap, slab, fullness_bucket);
    return true;
}

struct slab *hak_heap_densest(struct heap *heap, uint32_t class_index)
{
    uint32_t mask = heap->partial_mask[class_index];
    if (mask == 0)
        return NULL;
    return hak_list_element(heap->partial[class_index][hak_bit_highest(mask)].next, struct slab,
                            link);
}

struct slab *hak_heap_spare(struct heap *heap, uint32_t class_index)
{
    if (heap->spare_count[class_index] == 0)
        return NULL;
    return hak_list_element(heap->spares[class_index].next, struct slab, link);
}

void hak_heap_give(struct heap *heap, struct slab *slab, void *block)
{
    hak_slab_give(slab, block);
    hak_use_note(heap->owner.use, slab->class_index, -1);
    hak_heap_settle(heap, slab);
}

void hak_heap_take_out(struct heap *heap, struct slab *slab)
{
    unlist(heap, slab);
    slab->place = SLAB_OUT;
    slab->settled_from = 0;
}

void hak_heap_bring_back(struct slab *slab)
{
    struct slab_owner *owner = hak_load_relaxed(&slab->owner); /* of slabs that are out, constant */
    struct slab *first = hak_load_relaxed(&owner->purged);
    do
        slab->link.next = first != NULL ? &first->link : NULL;
    /* release: partner is the acquire in collect_purged, which takes all, so no address comes
     * back in between */
    while (!hak_cas_release(&owner->purged, &first, slab));
}

/* What lost pages is used last. */
static void settle_last(struct heap *heap, struct slab *slab)
{
    unlist(heap, slab);
    if (!hak_heap_settle(heap, slab) || slab->place != SLAB_PARTIAL)
        return;
    hak_list_remove(&slab->link);
    hak_list_insert_last(&heap->partial[slab->class_index][slab->fullness_bucket], &slab->link);
}

static HAK_NOINLINE void collect_purged(struct heap *heap)
{
    /* acquire: partner is the release in hak_heap_bring_back */
    struct slab *slab = hak_exchange_acquire(&heap->owner.purged, NULL);
    while (slab != NULL) {
        struct list_link *next = slab->link.next;
        settle_last(heap, slab);
        slab = next != NULL ? hak_list_element(next, struct slab, link) : NULL;
    }
}

void hak_heap_collect(struct heap *heap)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&heap->owner.purged) != NULL))
        collect_purged(heap);
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
            hak_heap_settle(heap, slab);
        }
        slab = next;
    }
}

struct slab *hak_heap_surrender(struct heap *from, uint32_t class_index)
{
    hak_heap_collect(from);
    struct slab *slab = hak_heap_densest(from, class_index);
    if (slab == NULL)
        slab = hak_heap_spare(from, class_index);
    if (slab != NULL) {
        unlist(from, slab);
        hak_use_note_slab(from->owner.use, class_index, -1, slab->used);
    }
    return slab;
}

bool hak_heap_receive(struct heap *heap, struct slab *slab)
{
    /* release: partner is the acquire in hak_pending_push and hak_heap_collect */
    hak_store_release(&slab->owner, &heap->owner);
    hak_use_note_slab(heap->owner.use, slab->class_index, 1, slab->used);
    return hak_heap_settle(heap, slab);
}

/* To the pool; false: a free of another thread's is under way. */
static bool retire_spare(struct heap *heap, struct slab *slab)
{
    if (hak_load_relaxed(&slab->remote_count) != 0)
        return false;
    unlist(heap, slab);
    retire(heap, slab);
    return true;
}

uint32_t hak_heap_retire_spares(struct heap *heap, uint32_t most)
{
    uint32_t retired = 0;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT && retired < most; i++) {
        struct list_link *next = heap->spares[i].next;
        for (uint32_t left = heap->spare_count[i]; left != 0 && retired < most; left--) {
            struct slab *slab = hak_list_element(next, struct slab, link);
            next = next->next;
            retired += retire_spare(heap, slab);
        }
    }
    return retired;
}

void hak_heap_retire_quiet(struct heap *heap, uint32_t class_index)
{
    struct list_link *next = heap->spares[class_index].next;
    for (uint32_t left = heap->spare_count[class_index]; left != 0; left--) {
        struct slab *slab = hak_list_element(next, struct slab, link);
        next = next->next;
        if (slab->heat == SLAB_HOT)
            slab->heat = 0;
        else
            retire_spare(heap, slab);
    }
}

size_t hak_heap_free_bytes(const struct heap *heap)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
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
    hak_heap_retire_spares(heap, UINT32_MAX);
    hak_large_drop_cached(&heap->spans, UINT64_MAX, 0, 0);
}
