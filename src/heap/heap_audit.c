/* SPDX-License-Identifier: MIT */
#include "heap/heap.h"

static bool list_is_sound(struct heap *heap, uint32_t class_index, uint32_t fullness_bucket)
{
    struct list_link *list = &heap->partial[class_index][fullness_bucket];
    for (struct list_link *i = list->next; i != list; i = i->next) {
        struct slab *slab = hak_list_element(i, struct slab, link);
        if (slab->place != SLAB_PARTIAL || slab->fullness_bucket != fullness_bucket ||
            !hak_heap_is_settled(slab) || hak_slab_is_full(slab) ||
            slab->class_index != class_index || !hak_slab_is_sound(slab) ||
            hak_load_relaxed(&slab->owner) != &heap->owner)
            return false;
    }
    return !hak_list_is_empty(list);
}

static bool sweeps_are_sound(const struct heap *heap)
{
    for (uint32_t i = 0; i < SWEEPS; i++) {
        const struct sweep_place *place = &heap->sweeps[i];
        const struct slab *slab = place->slab;
        if (slab != NULL &&
            (slab->place != SLAB_PARTIAL || slab->class_index != place->class_index ||
             slab->fullness_bucket != place->fullness_bucket ||
             hak_load_relaxed(&slab->owner) != &heap->owner))
            return false;
    }
    return true;
}

/* Adds their granules. */
static bool spares_are_sound(const struct heap *heap, uint32_t class_index, uint32_t *granules)
{
    const struct list_link *next = heap->spares[class_index].next;
    for (uint32_t left = heap->spare_count[class_index]; left != 0; left--) {
        const struct slab *slab = hak_list_element(next, struct slab, link);
        if (slab->used != 0 || slab->place != SLAB_SPARE || slab->class_index != class_index)
            return false;
        *granules += slab->granule_count;
        next = next->next;
    }
    return heap->spare_count[class_index] == 0 || next == &heap->spares[class_index];
}

bool hak_heap_is_sound(struct heap *heap)
{
    uint32_t granules = 0;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        for (uint32_t fullness_bucket = 0; fullness_bucket < HAK_FULLNESS_BUCKETS;
             fullness_bucket++)
            if ((heap->partial_mask[i] & (1u << fullness_bucket)) &&
                !list_is_sound(heap, i, fullness_bucket))
                return false;
        if (!spares_are_sound(heap, i, &granules))
            return false;
    }
    return granules == heap->spare_granules && sweeps_are_sound(heap);
}
