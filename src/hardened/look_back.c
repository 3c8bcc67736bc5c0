/* SPDX-License-Identifier: MIT */
#include "hardened/look_back.h"

#include "hardened/waiting.h"
#include "heap/heaps.h"
#include "misuse/canary.h"
#include "misuse/report.h"

/* What is wrong with a block. */
enum flaw { FLAW_NONE, FLAW_BEHIND, FLAW_BEFORE };

/* It starts in the slab. */
static enum flaw find_flaw(const struct slab *slab, char *block)
{
    size_t capacity = slab->block_bytes;
    if (!hak_canary_is_whole_now(block, capacity))
        return FLAW_BEHIND;
    if ((uintptr_t)block == slab->start)
        return FLAW_NONE;
    enum canary_fresh fresh = slab->zero_from == 0 ? CANARY_FRESH_ZERO : CANARY_FRESH_UNKNOWN;
    bool is_whole = hak_canary_end_is_whole(block - capacity, capacity, fresh);
    return is_whole ? FLAW_NONE : FLAW_BEFORE;
}

/* The same for any address; nothing is wrong unless a block of this heap's starts there. */
static enum flaw find_flaw_inside(const struct heap *heap, char *block)
{
    uint32_t granule = hak_granule_of(block), index;
    if (!hak_tag_is_class(hak_tag_read(granule)))
        return FLAW_NONE;
    /* acquire: partner is the release in hak_owner_write; the owner of the slab is as new */
    struct slab *slab = hak_load_acquire(&hak_region.owners[granule]);
    bool is_its = slab != NULL && hak_load_relaxed(&slab->owner) == &heap->owner;
    if (!is_its || !hak_slab_find_start(slab, block, &index) || index >= slab->block_count)
        return FLAW_NONE;
    return find_flaw(slab, block);
}

/* Does nothing while another thread is inside the heap. */
static void look_at(struct heap *heap, char *block)
{
    if (hak_lock_is_inside() || !hak_heap_try_enter(heap))
        return;
    enum flaw flaw = find_flaw_inside(heap, block);
    /* Not where it is another heap's by now, whose marks may be cleared at this moment. */
    size_t bytes =
        flaw == FLAW_NONE ? 0 : hak_mark_unpack(hak_load_relaxed(hak_mark_of(block))).bytes;
    hak_heap_leave(heap);
    if (HAK_UNLIKELY(flaw == FLAW_BEHIND))
        hak_misuse("overflow", block, bytes, "the bytes behind it were overwritten");
    if (HAK_UNLIKELY(flaw == FLAW_BEFORE))
        hak_misuse("underflow", block, bytes, "the bytes before it were overwritten");
}

void hak_look_back(struct cache *cache)
{
    hak_waiting_look(cache);
    if (cache->last_slow != NULL && hak_harden_has(HARDEN_CANARY))
        look_at(cache->last_slow_heap, cache->last_slow);
}

void hak_look_back_note(struct cache *cache, void *block)
{
    struct slab *slab = hak_slab_at(block);
    if (slab == NULL)
        return;
    cache->last_slow = block;
    /* acquire: partner is the release in hak_heap_receive */
    cache->last_slow_heap = hak_heap_of(hak_load_acquire(&slab->owner));
}
