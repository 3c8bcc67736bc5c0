/* SPDX-License-Identifier: MIT */
#include "cache/tokens.h"

#include "cache/supply.h"

/* Slabs of heaps that nobody takes from any more may be half made: a slab counts only if tag, map
 * and record agree, and its heap's thread was outside. */
void hak_tokens_restore(struct heap *first, bool (*is_whole)(const struct heap *))
{
    for (struct heap *heap = first; heap != NULL; heap = heap->next)
        if (is_whole(heap))
            hak_pending_take_all(&heap->owner);
    size_t limit = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    for (size_t granule = 0; granule < limit; granule++) {
        uint32_t tag = hak_tag_read(granule);
        struct slab *slab = hak_tag_is_slab(tag) ? hak_owner_read(granule) : NULL;
        struct slab_owner *owner = slab == NULL ? NULL : hak_load_relaxed(&slab->owner);
        if (owner != NULL && tag == hak_supply_tag(slab, owner) && is_whole(hak_heap_of(owner)) &&
            hak_granule_of((void *)slab->start) == granule)
            hak_pending_restore(slab);
    }
}
