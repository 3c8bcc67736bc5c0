/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "api/background.h"
#include "api/guard.h"
#include "api/hardened.h"
#include "api/refusal.h"
#include "api/tally.h"
#include "api/tick.h"
#include "api/vault.h"
#include "base/check.h"
#include "cache/lifecycle.h"
#include "cache/limit.h"
#include "cache/refill.h"
#include "cache/supply.h"
#include "harden/checks.h"
#include "observe/decision.h"
#include "os/os.h"
#include "span/large.h"

#include <errno.h>
#include <string.h>

enum content { CONTENT_ANY, CONTENT_ZERO };

static void *clear(void *block, uint32_t class_index, enum content content)
{
    if (block != NULL && content == CONTENT_ZERO)
        memset(block, 0, hak_size_classes[class_index].block_bytes);
    return block;
}

static void *class_take(struct thread_cache *cache, uint32_t class_index, size_t alignment,
                        enum content content)
{
    void *block = hak_bin_pop(&cache->hot.bins[class_index]);
    if (block == NULL && HAK_UNLIKELY(hak_region_is_tight()))
        block = hak_cache_take_tight(cache, class_index, alignment);
    if (block == NULL && content == CONTENT_ZERO) {
        bool is_zero = false;
        cache->guard_left_bytes -= hak_size_classes[class_index].block_bytes;
        block = hak_heap_take_one(&cache->heap, class_index, &is_zero);
        return is_zero ? block : clear(block, class_index, content);
    }
    if (block == NULL)
        block = hak_cache_refill(cache, class_index);
    return clear(block, class_index, content);
}

/* One try for a block of the class, or, for HAK_CLASS_COUNT, a large one. */
static void *take_once(struct thread_cache *cache, uint32_t class_index, size_t bytes,
                       size_t alignment, enum content content)
{
    if (class_index < HAK_CLASS_COUNT)
        return class_take(cache, class_index, alignment, content);
    void *block = hak_supply_large(&cache->heap.spans, bytes, alignment,
                                   content == CONTENT_ZERO ? LARGE_ZERO : LARGE_ANY);
    if (HAK_LIKELY(block != NULL))
        hak_stat_add(&cache->heap.stats, spans_taken, 1);
    return block;
}

/* When memory is out: everything that this thread has cached and everything that is free goes home
 * before a second try, and at last a block of any larger class will do. */
static HAK_NOINLINE void *take_at_last(struct thread_cache *cache, uint32_t class_index,
                                       size_t bytes, size_t alignment, enum content content)
{
    hak_cache_flush_all(cache);
    hak_heap_retire_spares(&cache->heap);
    hak_maintain_purge_all();
    void *block = take_once(cache, class_index, bytes, alignment, content);
    if (block != NULL || class_index == HAK_CLASS_COUNT)
        return block;
    block = hak_cache_take_larger(cache, class_index, HAK_CLASS_COUNT, alignment);
    return clear(block, class_index, content);
}

static void *take_in_service(uint32_t class_index, size_t bytes, size_t alignment,
                             enum content content)
{
    struct service service = hak_service_begin();
    void *block = NULL;
    if (service.cache != NULL) {
        block = take_once(service.cache, class_index, bytes, alignment, content);
        if (HAK_UNLIKELY(block == NULL))
            block = take_at_last(service.cache, class_index, bytes, alignment, content);
    }
    hak_service_end(&service);
    return block;
}

static HAK_NOINLINE void *take_ordinary(uint32_t class_index, size_t bytes, size_t alignment,
                                        enum content content)
{
    void *block = take_in_service(class_index, bytes, alignment, content);
    /* At a limit of one's own, what other threads have lying about counts. */
    if (HAK_UNLIKELY(block == NULL) && hak_limit_is_set()) {
        hak_maintain_relieve();
        block = take_in_service(class_index, bytes, alignment, content);
    }
    if (HAK_UNLIKELY(block == NULL)) {
        hak_stat_global_add(out_of_memory, 1);
        hak_decide(out_of_memory, bytes);
        hak_refusal_tell(bytes);
        errno = ENOMEM;
    }
    if (class_index == HAK_CLASS_COUNT)
        hak_background_consider();
    return block;
}

/* The common way of every unusual request; inline, so that it knows who asks. */
HAK_INLINE void *take(uint32_t class_index, size_t bytes, size_t alignment, enum content content)
{
    struct thread_cache *cache = hak_own_cache();
    void *block = NULL;
    if (hak_guard_is_due(cache))
        block = hak_guard_take(cache, bytes, alignment, HAK_GUARD_CALLER());
    return block != NULL ? block : take_ordinary(class_index, bytes, alignment, content);
}

void hak_thread_flush(void)
{
    if (!hak_thread->is_heap)
        return;
    struct service service = hak_service_begin();
    if (service.cache != NULL) {
        hak_vault_drain(&service);
        hak_cache_flush_all(service.cache);
        hak_heap_retire_spares(&service.cache->heap);
    }
    hak_service_end(&service);
}

static void *refuse(void)
{
    errno = ENOMEM;
    return NULL;
}

HAK_INLINE void *malloc_plain(size_t bytes)
{
    if (HAK_UNLIKELY(bytes > HAK_REQUEST_BYTES_MAX))
        return refuse();
    uint32_t class_index = bytes <= HAK_CLASS_BYTES_MAX ? hak_class_of(bytes) : HAK_CLASS_COUNT;
    return take(class_index, bytes, 16, CONTENT_ANY);
}

void *hak_malloc_slow(size_t bytes)
{
    if (HAK_UNLIKELY(hak_tally_request(bytes)))
        return hak_hardened_take((struct request){.bytes = bytes});
    return malloc_plain(bytes);
}

void *hak_malloc_uncounted(size_t bytes)
{
    if (HAK_UNLIKELY(hak_is_hardened()))
        return hak_hardened_take((struct request){.bytes = bytes});
    return malloc_plain(bytes);
}

void *hak_calloc_slow(size_t bytes)
{
    if (HAK_UNLIKELY(hak_tally_request(bytes)))
        return hak_hardened_take((struct request){.bytes = bytes, .is_zero = true});
    if (HAK_UNLIKELY(bytes > HAK_REQUEST_BYTES_MAX))
        return refuse();
    uint32_t class_index = bytes <= HAK_CLASS_BYTES_MAX ? hak_class_of(bytes) : HAK_CLASS_COUNT;
    return take(class_index, bytes, 16, CONTENT_ZERO);
}

void *hak_aligned_slow(size_t alignment, size_t bytes)
{
    if (HAK_UNLIKELY(hak_tally_request(bytes)))
        return hak_hardened_take((struct request){.bytes = bytes, .alignment = alignment});
    if (HAK_UNLIKELY(bytes > HAK_REQUEST_BYTES_MAX || alignment > HAK_REQUEST_BYTES_MAX))
        return refuse();
    return take(hak_class_of_aligned(bytes, alignment), bytes, alignment, CONTENT_ANY);
}

/* Usually after many that did not come by here, which count for the tick. */
static void send_home(struct thread_cache *cache, struct slab *slab, void *block)
{
    if (hak_combine_sort(&cache->combine, &cache->heap.stats))
        cache->slow_count |= HAK_SLOW_OPERATIONS_PER_TICK / 2 - 1;
    hak_combine_add(&cache->combine, slab, block, &cache->heap.stats);
}

/* Whether the thread's bins take blocks with the tag. */
HAK_INLINE bool may_keep(const struct cache_bins *cache, uint32_t tag)
{
    return (tag & cache->others) < HAK_BIN_LIMIT;
}

/* A block of some heap's slab: into the bin if ours may take it, else home or on its way there. */
static void give_small(struct thread_cache *cache, void *block, uint32_t tag, bool is_borrowed)
{
    struct slab *slab = hak_owner_read(hak_granule_of(block));
    if (is_borrowed) {
        hak_combine_bypass(slab, block);
        return;
    }
    if (!may_keep(&cache->hot, tag)) {
        send_home(cache, slab, block);
        return;
    }
    uint32_t class_index = slab->class_index;
    struct bin *bin = &cache->hot.bins[class_index];
    hak_slab_index_of(slab, block, "invalid free");
    if (hak_bin_is_full(bin))
        hak_cache_flush(cache, class_index);
    if (!hak_bin_is_full(bin))
        hak_bin_push(bin, block);
    else if (hak_load_relaxed(&slab->owner) == &cache->heap.owner) /* it has no magazine yet */
        hak_heap_give(&cache->heap, slab, block);
    else
        send_home(cache, slab, block);
}

/* Without a heap. */
static void give_alone(void *block, uint32_t tag)
{
    if (hak_tag_is_slab(tag))
        hak_combine_bypass(hak_owner_read(hak_granule_of(block)), block);
    else
        hak_large_give(block);
}

static void give(void *block)
{
    struct service service = hak_service_begin();
    /* Not before the gate: until then a visitor may take the slab away (cache/idle.h). */
    uint32_t tag = hak_tag_read(hak_granule_of(block));
    if (service.cache == NULL) {
        give_alone(block, tag);
        hak_service_end(&service);
        return;
    }
    service.cache->hot.committed_bytes = hak_load_acquire(&hak_region.committed_bytes);
    if (hak_tag_is_slab(tag)) {
        give_small(service.cache, block, tag, service.is_borrowed);
    } else {
        hak_stat_add(&service.cache->heap.stats, spans_given, 1);
        hak_large_give_cached(service.is_borrowed ? NULL : &service.cache->heap.spans, block,
                              hak_cache_spans_most());
    }
    hak_service_end(&service);
    if (!hak_tag_is_slab(tag))
        hak_background_consider();
}

/* A small block of another heap that waits to go home with others. False: it is something else, or
 * there is no room. */
HAK_INLINE bool wait_for_others(struct cache_bins *cache, void *block)
{
    size_t offset = (uintptr_t)block - cache->base;
    if (HAK_UNLIKELY(offset >= cache->committed_bytes)) /* always, without a heap */
        return false;
    uint32_t tag = hak_load_relaxed(&cache->tags[offset >> HAK_GRANULE_SHIFT]);
    if (may_keep(cache, tag) || !hak_tag_may_wait(tag))
        return false;
    return hak_combine_wait(&((struct thread_cache *)(void *)cache)->combine, block);
}

static HAK_NOINLINE void free_anything(void *block)
{
    if (block == NULL)
        return;
    if (HAK_UNLIKELY(!hak_region_holds(block))) {
        hak_foreign_free(block);
        return;
    }
    uint32_t tag = hak_tag_read(hak_granule_of(block));
    if (HAK_UNLIKELY(tag == HAK_TAG_HOLE))
        hak_foreign_free(block);
    else if (HAK_UNLIKELY(tag == HAK_TAG_NONE))
        hak_misuse("invalid free", block, 0, "nothing is allocated there");
    else
        give(block);
}

/* False: it is not a block that hardened mode knows. */
static bool free_hardened(void *block, struct claim claim)
{
    return hak_hardened_is_on() && block != NULL && hak_hardened_give(block, claim);
}

/* Counts it, where frees are counted; as above. */
static HAK_NOINLINE bool free_watched(void *block, struct claim claim)
{
    if (block != NULL)
        hak_tally_free();
    return free_hardened(block, claim);
}

HAK_INLINE void free_plain(void *block)
{
    if (HAK_UNLIKELY(!wait_for_others(hak_thread, block)))
        free_anything(block);
}

void hak_free_slow(void *block)
{
    if (HAK_LIKELY(!hak_is_watched()) ||
        !free_watched(block, (struct claim){.bytes = HAK_ANY_BYTES}))
        free_plain(block);
}

void hak_free_uncounted(void *block)
{
    if (!free_hardened(block, (struct claim){.bytes = HAK_ANY_BYTES}))
        free_plain(block);
}

void hak_free_claimed_slow(void *block, size_t bytes, size_t alignment, int kind)
{
    struct claim claim = {bytes, alignment, (enum mark_kind)kind, alignment != 0};
    if (HAK_LIKELY(!hak_is_watched()) || !free_watched(block, claim))
        free_plain(block);
}
