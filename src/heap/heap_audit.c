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

bool hak_heap_is_sound(struct heap *heap)
{
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        for (uint32_t fullness_bucket = 0; fullness_bucket < HAK_FULLNESS_BUCKETS;
             fullness_bucket++)
            if ((heap->partial_mask[i] & (1u << fullness_bucket)) &&
                !list_is_sound(heap, i, fullness_bucket))
                return false;
        struct slab *spare = heap->spare[i];
        if (spare != NULL && (spare->used != 0 || spare->place != SLAB_SPARE))
            return false;
    }
    return sweeps_are_sound(heap);
}
