/* SPDX-License-Identifier: MIT */
#include "heap/sweep.h"

#include "base/bits.h"
#include "heap/supply.h"

/* Slabs on the lists below this fullness bucket are sparse: under five eighths of their blocks
 * are used. */
#define SPARSE_BUCKETS 5u
/* A slab is looked at again when so much of what was used has been freed. */
#define FREED_SHARE 8u

bool hak_heap_is_swept(const struct heap *heap)
{
    return hak_word_peek(&heap->sweeps[SWEEP_PASS].class_index) >= HAK_ALL_CLASS_COUNT;
}

bool hak_heap_class_is_sparse(const struct heap *heap, uint32_t class_index, size_t granules_least)
{
    size_t granules = (size_t)hak_word_peek(&heap->partial_count[class_index]) *
                      hak_size_classes[class_index].granule_count;
    return hak_word_peek(&heap->partial_mask[class_index]) < 1u << SPARSE_BUCKETS &&
           granules >= granules_least;
}

/* Whether a slab is worth a close look; notes that this pass has seen it. A pass that goes on after
 * a while comes by it again. */
static bool is_due(const struct heap *heap, struct slab *slab)
{
    uint8_t pass = (uint8_t)(1 + heap->sweep_pass % (SLAB_HOT - 1));
    if (slab->heat == SLAB_HOT) {
        slab->heat = pass;
        slab->swept_used = SLAB_UNSWEPT;
    }
    if (slab->heat == pass)
        return false;
    if (slab->swept_used == SLAB_UNSWEPT)
        return true;
    uint32_t freed = slab->swept_used - slab->used;
    return freed * FREED_SHARE > slab->swept_used;
}

/* A sweep of everything asks only whether blocks were taken or returned since the last look. */
static bool has_changed(struct slab *slab)
{
    if (slab->heat != SLAB_HOT && slab->swept_used == slab->used)
        return false;
    slab->heat = 0;
    return true;
}

/* Looks for dead pages of a slab, which is taken out if it has some, and notes the slab's state
 * for the next look. */
static void look(struct heap *heap, struct slab *slab, struct swept *swept)
{
    struct dead_leaves leaves = hak_slab_dead_leaves(slab);
    slab->swept_used = (uint16_t)slab->used;
    swept->looked++;
    hak_stat_add(&heap->stats, swept_slabs, 1);
    if (leaves.touched == 0)
        return;
    hak_heap_take_out(heap, slab);
    swept->out[swept->count].slab = slab;
    swept->out[swept->count++].leaves = leaves;
}

/* The slab that a sweep goes on with; NULL: the class has no more. */
static struct slab *find(const struct heap *heap, struct sweep_place *place, uint32_t buckets)
{
    if (place->slab == NULL) {
        uint32_t mask = heap->partial_mask[place->class_index] & buckets &
                        ~(uint32_t)hak_bit_low_mask(place->fullness_bucket);
        if (mask == 0)
            return NULL;
        place->fullness_bucket = hak_bit_lowest(mask);
        const struct list_link *list = &heap->partial[place->class_index][place->fullness_bucket];
        place->slab = hak_list_element(list->next, struct slab, link);
    }
    return place->slab;
}

/* Goes on in a class; false: this go has done enough. */
static bool sweep_class(struct heap *heap, enum sweep sweep, struct swept *swept)
{
    struct sweep_place *place = &heap->sweeps[sweep];
    uint32_t buckets = sweep == SWEEP_WHOLE ? UINT32_MAX : (1u << SPARSE_BUCKETS) - 1;
    struct slab *slab;
    while ((slab = find(heap, place, buckets)) != NULL) {
        if (swept->looked == HAK_SWEEP_SLABS || swept->passed == HAK_SWEEP_PASSED_MOST)
            return false;
        swept->passed++;
        hak_heap_sweep_past(heap, place);
        if (sweep == SWEEP_WHOLE ? has_changed(slab) : is_due(heap, slab))
            look(heap, slab, swept);
    }
    return true;
}

void hak_heap_sweep(struct heap *heap, uint64_t now_ms, uint64_t decay_ms, struct swept *swept)
{
    struct sweep_place *place = &heap->sweeps[SWEEP_PASS];
    swept->count = swept->looked = swept->passed = 0;
    if (hak_heap_is_swept(heap)) {
        if (now_ms - heap->sweep_start_ms < decay_ms)
            return;
        heap->sweep_start_ms = now_ms;
        heap->sweep_pass++;
        hak_heap_sweep_begin(place, 0);
    }
    for (; !hak_heap_is_swept(heap); hak_heap_sweep_begin(place, place->class_index + 1)) {
        if (!sweep_class(heap, SWEEP_PASS, swept))
            return;
        hak_heap_retire_quiet(heap, place->class_index);
    }
}

size_t hak_heap_purge_swept(struct heap *heap, const struct swept *swept)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < swept->count; i++) {
        bytes += hak_slab_purge(swept->out[i].slab, swept->out[i].leaves);
        hak_heap_bring_back(swept->out[i].slab);
    }
    hak_stat_add_shared(&heap->stats, swept_bytes, bytes);
    return bytes;
}

static uint32_t partial_slabs(const struct heap *heap)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        count += heap->partial_count[i];
    return count;
}

bool hak_heap_sweep_whole(struct heap *heap, struct whole_sweep *whole, struct swept *swept)
{
    struct sweep_place *place = &heap->sweeps[SWEEP_WHOLE];
    hak_heap_collect(heap);
    swept->count = swept->looked = swept->passed = 0;
    if (!whole->is_begun) {
        whole->is_begun = true;
        whole->slabs_left = 2 * partial_slabs(heap);
        hak_heap_sweep_begin(place, 0);
    }
    while (place->class_index < HAK_ALL_CLASS_COUNT && sweep_class(heap, SWEEP_WHOLE, swept))
        hak_heap_sweep_begin(place, place->class_index + 1);
    whole->slabs_left = (uint32_t)hak_excess(whole->slabs_left, swept->passed);
    return whole->slabs_left == 0 || place->class_index == HAK_ALL_CLASS_COUNT;
}
