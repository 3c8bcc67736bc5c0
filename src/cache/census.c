/* SPDX-License-Identifier: MIT */
#include "cache/census.h"

#include "cache/private_heap.h"
#include "cache/registry.h"
#include "harden/quarantine.h"

#include <string.h>

static void count_bins(struct census *census, const struct thread_cache *cache)
{
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++)
        census->classes[i].cached += hak_magazine_peek(&cache->magazines[i], &cache->hot.bins[i]);
}

static void count_combined(struct census *census, const struct combine *combine)
{
    if (combine->held_bytes == 0)
        return;
    for (uint32_t i = 0; i < HAK_COMBINE_ENTRIES; i++) {
        const struct combine_entry *entry = &combine->entries[i];
        if (entry->slab != NULL)
            census->classes[entry->slab->class_index].withheld += hak_bit_count(entry->mask);
    }
}

static void count_pending(struct census *census, struct slab_owner *owner)
{
    /* acquire: partner is the release in hak_pending_push; behind the first slab every link was
     * written before it */
    struct slab *slab = hak_load_acquire(&owner->pending);
    for (; slab != NULL; slab = hak_pending_next(slab))
        census->classes[slab->class_index].homeward += hak_load_relaxed(&slab->remote_count);
}

static void count_quarantine(struct census *census, const struct quarantine *quarantine)
{
    for (uint32_t i = 0; quarantine != NULL && i < quarantine->count; i++) {
        uint32_t granule = hak_granule_of(hak_quarantine_at(quarantine, i));
        uint32_t tag = hak_tag_read(granule);
        if (hak_tag_is_slab(tag)) {
            census->classes[hak_tag_class(tag)].withheld++;
        } else {
            const struct span *span = hak_owner_read(granule);
            census->large_withheld_bytes += hak_span_bytes(span);
            census->large_withheld_blocks++;
        }
    }
}

static void count_cache(struct census *census, const struct thread_cache *cache)
{
    count_bins(census, cache);
    count_combined(census, &cache->combine);
    count_quarantine(census, cache->quarantine);
}

static void count_heap(struct heap *heap, enum heap_access access, void *context)
{
    struct census *census = context;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        const struct class_use *use = &heap->owner.use[i];
        census->classes[i].slabs += hak_load_relaxed(&use->slabs);
        census->classes[i].used += hak_load_relaxed(&use->used_blocks);
        census->classes[i].taken += hak_load_relaxed(&use->taken_blocks);
    }
    struct private_heap *private_heap = NULL;
    if (hak_load_relaxed(&heap->state) == HEAP_PRIVATE)
        private_heap = hak_private_look_into(heap);
    if (access == HEAP_CLOSED && private_heap == NULL) {
        census->closed_heaps++;
        return;
    }
    count_pending(census, &heap->owner);
    if (private_heap != NULL)
        hak_private_leave(private_heap);
    else
        count_cache(census, hak_cache_of(heap));
}

void hak_census_take(struct census *census)
{
    memset(census, 0, sizeof *census);
    hak_registry_visit(count_heap, census);
}
