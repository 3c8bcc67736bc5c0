/* SPDX-License-Identifier: MIT */
#include "heap/census.h"

#include "heap/cache_list.h"
#include "heap/heaps.h"
#include "heap/private_heap.h"
#include "misuse/quarantine.h"

#include <string.h>

static uint64_t popped_from(const struct cache *cache, uint32_t class_index)
{
    return hak_load_relaxed(&cache->popped[class_index]) -
           hak_word_peek(&hak_bin_of(hak_cache_bins(cache), class_index)->countdown);
}

static void count_bins(struct census *census, const struct cache *cache)
{
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        census->classes[i].cached += hak_cache_count(cache, i);
        census->classes[i].popped += popped_from(cache, i);
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

/* A hint: the span may be another one's by now. */
static HAK_RACY size_t bytes_of(const struct span *span)
{
    return hak_span_bytes(span);
}

static void count_withheld(struct census *census, const void *block)
{
    uint32_t granule = hak_granule_of(block);
    uint32_t tag = hak_region_holds(block) ? hak_tag_read(granule) : HAK_TAG_NONE;
    const struct span *span = tag == HAK_TAG_SPAN ? hak_span_named_at(granule) : NULL;
    if (hak_tag_is_class(tag)) {
        census->classes[hak_tag_class(tag)].withheld++;
    } else if (span != NULL) {
        census->large_withheld_bytes += bytes_of(span);
        census->large_withheld_blocks++;
    }
}

/* The thread that has it may be at work on it: what it holds is a block, or was one. */
static void count_quarantine(struct census *census, const struct quarantine *quarantine)
{
    if (quarantine == NULL)
        return;
    uint32_t count = hak_word_peek(&quarantine->count);
    uint32_t gathered = hak_word_peek(&quarantine->gathered_count);
    for (uint32_t i = 0; i < count; i++)
        count_withheld(census, hak_quarantine_peek(quarantine, i));
    for (uint32_t i = 0; i < gathered; i++)
        count_withheld(census, hak_word_peek(&quarantine->gathered[i]));
}

static void count_heap(struct heap *heap, enum heap_access access, void *context)
{
    struct census *census = context;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        const struct class_use *use = &heap->owner.use[i];
        census->classes[i].slabs += hak_load_relaxed(&use->slabs);
        census->classes[i].used += hak_load_relaxed(&use->used_blocks);
        census->classes[i].taken += hak_load_relaxed(&use->taken_blocks);
    }
    if (access == HEAP_ENTERED)
        count_pending(census, &heap->owner);
    else
        census->closed_heaps++;
}

void hak_census_take(struct census *census)
{
    memset(census, 0, sizeof *census);
    hak_heaps_visit(count_heap, census);
    hak_private_visit(count_heap, census);
    for (const struct cache *i = hak_caches_first(); i != NULL; i = i->next) {
        if (hak_word_peek(&i->place) == CACHE_LOST)
            continue;
        count_bins(census, i);
        /* acquire: partner is the release in quarantine_of (hardened/waiting.c) */
        count_quarantine(census, hak_load_acquire(&i->quarantine));
    }
}

void hak_census_popped(uint64_t popped[HAK_ALL_CLASS_COUNT])
{
    memset(popped, 0, HAK_ALL_CLASS_COUNT * sizeof *popped);
    for (const struct cache *i = hak_caches_first(); i != NULL; i = i->next)
        for (uint32_t of = 0; of < HAK_ALL_CLASS_COUNT; of++)
            popped[of] += popped_from(i, of);
}

uint64_t hak_census_counter(enum hak_stat stat)
{
    uint64_t sum = hak_load_relaxed(&hak_stat_cacheless.counters[stat]);
    uint32_t count = hak_heap_count();
    for (uint32_t i = 0; i < count; i++)
        sum += hak_load_relaxed(&hak_heap_at(i)->stats.counters[stat]);
    for (const struct private_heap *i = hak_private_first(); i != NULL; i = i->next)
        sum += hak_load_relaxed(&i->heap.stats.counters[stat]);
    for (const struct cache *i = hak_caches_first(); i != NULL; i = i->next)
        sum += hak_load_relaxed(&i->stats.counters[stat]);
    return sum;
}
