/* SPDX-License-Identifier: MIT */
#include "heap/sweep.h"

#include "heap/supply.h"
#include "slab/pages.h"

/* Slabs on the lists below this fullness bucket are sparse: under five eighths of their blocks
 * are used. */
#define SPARSE_BUCKETS 5u
/* A class with less than this many granules of partial slabs is never worth an effort. */
#define SPARSE_GRANULES (HAK_SUPERSLAB_GRANULES / 2)
/* A sweep of everything looks at so many slabs in one go. */
#define WHOLE_SWEEP_SLABS 64u
/* A slab is looked at again when so much of what was used has been freed. */
#define FREED_SHARE 8u

bool hak_heap_is_swept(const struct heap *heap)
{
    return heap->sweep_class >= HAK_ALL_CLASS_COUNT;
}

bool hak_heap_class_is_sparse(const struct heap *heap, uint32_t class_index)
{
    size_t granules = (size_t)hak_word_peek(&heap->partial_count[class_index]) *
                      hak_size_classes[class_index].granule_count;
    return hak_word_peek(&heap->partial_mask[class_index]) < 1u << SPARSE_BUCKETS &&
           granules >= SPARSE_GRANULES;
}

/* Whether a slab is worth a close look; notes that this pass has seen it. */
static bool is_due(struct slab *slab)
{
    if (slab->is_hot) {
        slab->is_hot = false;
        slab->swept_used = SLAB_UNSWEPT;
        return false;
    }
    if (slab->swept_used == SLAB_UNSWEPT)
        return true;
    uint32_t freed = slab->swept_used - slab->used;
    return freed * FREED_SHARE > slab->swept_used;
}

/* A sweep of everything asks only whether blocks were taken or came home since the last look. */
static bool has_changed(struct slab *slab)
{
    if (!slab->is_hot && slab->swept_used == slab->used)
        return false;
    slab->is_hot = false;
    return true;
}

/* Gives back the dead pages of a slab; whoever looks next knows how it was. */
static size_t purge_slab(struct heap *heap, struct slab *slab)
{
    size_t bytes = hak_slab_purge_dead(slab);
    slab->swept_used = (uint16_t)slab->used;
    hak_stat_add(&heap->stats, swept_slabs, 1);
    hak_stat_add(&heap->stats, swept_bytes, bytes);
    return bytes;
}

enum sweep { SWEEP_PASS, SWEEP_WHOLE };

/* Sweeps one list; returns how many slabs were looked at closely, at most `most`. */
static uint32_t sweep_list(struct heap *heap, struct list_link *list, enum sweep sweep,
                           uint32_t most, size_t *bytes)
{
    uint32_t looked = 0;
    for (struct list_link *i = list->next; i != list && looked < most; i = i->next) {
        struct slab *slab = hak_list_element(i, struct slab, link);
        if (sweep == SWEEP_WHOLE ? !has_changed(slab) : !is_due(slab))
            continue;
        *bytes += purge_slab(heap, slab);
        looked++;
    }
    return looked;
}

static uint32_t sweep_class(struct heap *heap, uint32_t class_index, enum sweep sweep,
                            uint32_t most, size_t *bytes)
{
    uint32_t looked = 0;
    uint32_t mask = heap->partial_mask[class_index];
    if (sweep == SWEEP_PASS)
        mask &= (1u << SPARSE_BUCKETS) - 1;
    for (; mask != 0 && looked < most; mask &= mask - 1) {
        struct list_link *list = &heap->partial[class_index][hak_bit_lowest(mask)];
        looked += sweep_list(heap, list, sweep, most - looked, bytes);
    }
    return looked;
}

/* An empty slab that nothing was taken from since the last pass goes back to the pool. */
static void retire_quiet_spare(struct heap *heap, uint32_t class_index)
{
    struct slab *spare = heap->spare[class_index];
    if (spare == NULL)
        return;
    if (spare->is_hot)
        spare->is_hot = false;
    else
        hak_heap_retire_spare(heap, class_index);
}

size_t hak_heap_sweep(struct heap *heap, uint64_t now_ms, uint64_t decay_ms, uint32_t slabs_most)
{
    size_t bytes = 0;
    if (hak_heap_is_swept(heap)) {
        if (now_ms - heap->sweep_start_ms < decay_ms)
            return 0;
        heap->sweep_start_ms = now_ms;
        heap->sweep_class = 0;
    }
    while (slabs_most > 0 && !hak_heap_is_swept(heap)) {
        uint32_t looked = sweep_class(heap, heap->sweep_class, SWEEP_PASS, slabs_most, &bytes);
        slabs_most -= looked;
        if (slabs_most > 0)
            retire_quiet_spare(heap, heap->sweep_class++);
    }
    return bytes;
}

static uint32_t partial_slabs(const struct heap *heap)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        count += heap->partial_count[i];
    return count;
}

bool hak_heap_sweep_whole(struct heap *heap, struct whole_sweep *sweep)
{
    if (!sweep->is_begun) {
        hak_heap_collect(heap);
        sweep->is_begun = true;
        sweep->slabs_left = partial_slabs(heap);
    }
    uint32_t most = (uint32_t)hak_least(WHOLE_SWEEP_SLABS, sweep->slabs_left);
    sweep->slabs_left -= most;
    while (most > 0 && sweep->class_index < HAK_ALL_CLASS_COUNT) {
        most -= sweep_class(heap, sweep->class_index, SWEEP_WHOLE, most, &sweep->bytes);
        if (most > 0)
            sweep->class_index++;
    }
    return sweep->slabs_left == 0 || sweep->class_index == HAK_ALL_CLASS_COUNT;
}
