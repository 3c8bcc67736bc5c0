/* SPDX-License-Identifier: MIT */
#include "heap/remote_recount.h"

#include "heap/heaps.h"
#include "heap/private_heap.h"
#include "heap/supply.h"

static bool is_whole(const struct slab_owner *owner)
{
    const struct heap *heap = hak_heap_of((struct slab_owner *)owner);
    return hak_load_relaxed(&heap->state) == HEAP_OPEN;
}

/* Slabs of lost heaps may be half made: a slab counts only if tag, map and record agree, and nobody
 * was changing its heap. */
static void restore(uint32_t granule)
{
    uint32_t tag = hak_tag_read(granule);
    struct slab *slab = hak_tag_is_slab(tag) ? hak_owner_read(granule) : NULL;
    struct slab_owner *owner = slab == NULL ? NULL : hak_load_relaxed(&slab->owner);
    if (owner != NULL && tag == hak_supply_tag(slab, owner) && is_whole(owner) &&
        hak_granule_of((void *)slab->start) == granule)
        hak_pending_restore(slab);
}

static void forget_pending(struct heap *heap)
{
    if (is_whole(&heap->owner))
        hak_pending_take_all(&heap->owner);
}

void hak_remote_recount(void)
{
    uint32_t count = hak_heap_count();
    for (uint32_t i = 0; i < count; i++)
        forget_pending(hak_heap_at(i));
    for (struct private_heap *i = hak_private_first(); i != NULL; i = i->next)
        forget_pending(&i->heap);
    size_t limit = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    for (uint32_t granule = 0; granule < limit; granule++)
        restore(granule);
}
