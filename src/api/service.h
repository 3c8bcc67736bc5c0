/* SPDX-License-Identifier: MIT */
/* api/service.h - a heap for one slow call.
 *
 * Owns        nothing; the heap is the thread's or borrowed.
 * Invariants  between begin and end the heap's gate is held.
 * Threads     any, signal handlers too.
 * Tests       tests/unit/api/, tests/preload/signals.c
 */
#ifndef HAK_API_SERVICE_H
#define HAK_API_SERVICE_H

#include "cache/lifecycle.h"
#include "cache/refill.h"
#include "cache/registry.h"
#include "os/lock.h"

/* The cache that serves this call, with the gate of its heap held. Usually the thread's own; a
 * borrowed one past the thread's end, or when a handler interrupted the thread inside its gate. */
struct service {
    /* NULL: no memory even for a heap, or a handler interrupted who holds a lock. */
    struct thread_cache *cache;
    bool is_borrowed;
    bool is_shielded; /* from signals: slow paths of this program are left by jumps */
    uint64_t signals_before;
};

/* Begins, and ends after the gate was left, when something out of the common has to be seen to;
 * `here`: the frame of who begins. The end of every service is in api/tick.h. */
struct service hak_service_begin_slow(uintptr_t here);
void hak_service_end_slow(const struct service *service);

/* The thread's heap when there is nothing to take care of; else NULL. */
HAK_INLINE struct heap *hak_heap_at_rest(void)
{
    struct heap *heap = hak_own_heap();
    bool is_at_rest = heap != NULL && !hak_gate_is_nested(&heap->gate) && hak_lock_held == 0 &&
                      !hak_load_relaxed(&hak_gate_jumps_matter) && !hak_copy_is_unnoticed();
    return HAK_LIKELY(is_at_rest) ? heap : NULL;
}

/* Outside every lock, and outside the gate of its own heap: no handler that interrupted a section
 * or a slow path of its thread. */
HAK_INLINE bool hak_thread_is_outside(void)
{
    const struct heap *own = hak_own_heap();
    return !hak_lock_is_inside() && (own == NULL || !hak_gate_is_nested(&own->gate));
}

HAK_INLINE struct service hak_service_begin(void)
{
    struct heap *heap = hak_heap_at_rest();
    if (HAK_UNLIKELY(heap == NULL || !hak_heap_enter(heap)))
        return hak_service_begin_slow((uintptr_t)__builtin_frame_address(0));
    return (struct service){.cache = hak_cache_of(heap)};
}

/* Where the window is tight, a block of one of so many larger classes is better than a new slab:
 * hak_cache_take_larger for these. */
#define HAK_TIGHT_CLASSES 16u
HAK_INLINE void *hak_cache_take_tight(struct thread_cache *cache, uint32_t class_index,
                                      size_t alignment)
{
    uint32_t limit = (uint32_t)hak_least(class_index + HAK_TIGHT_CLASSES, HAK_CLASS_COUNT);
    return hak_cache_take_larger(cache, class_index, limit, alignment);
}

#endif
