/* SPDX-License-Identifier: MIT */
/* process/slow_path.h - a thread's cache for one slow call.
 *
 * Owns        nothing.
 * Invariants  between begin and end the cache of a slot is busy. A handler that interrupts its
 *             thread then uses no cache, like a thread after its exit: each block comes from a heap
 *             and is returned at once. A processor's cache is never busy; a handler may use it.
 * Threads     any, signal handlers too.
 * Tests       tests/unit/process/slow_path_test.c, tests/preload/life.c
 */
#ifndef HAK_PROCESS_SLOW_PATH_H
#define HAK_PROCESS_SLOW_PATH_H

#include "heap/heaps.h"
#include "heap/refill.h"
#include "heap/slow_clock.h"
#include "os/lock.h"
#include "process/mend.h"
#include "process/start.h"

struct slow_path {
    struct cache *cache; /* NULL: this call uses none */
    bool is_refused;     /* it interrupted a thread with a lock, or hakmem cannot start */
    bool is_shielded;    /* from signals: slow paths of this program are left by jumps */
    uint64_t signals_before;
    uint64_t begun_ns; /* 0: not timed */
};

/* Begins and ends in unusual cases; `here`: the frame of the caller. Every end is in
 * process/tick.h. */
struct slow_path hak_slow_path_begin_special(uintptr_t here);
void hak_slow_path_end_special(const struct slow_path *path);

/* The thread's cache when there is nothing to take care of; else NULL. */
HAK_INLINE struct cache *hak_cache_at_rest(void)
{
    struct cache *cache = hak_own_cache();
    bool is_at_rest = cache != NULL && hak_cache_state(cache) == CACHE_IDLE && hak_lock_held == 0 &&
                      !hak_heap_is_held() && !hak_load_relaxed(&hak_jumps_matter) &&
                      !hak_copy_is_unnoticed();
    return HAK_LIKELY(is_at_rest) ? cache : NULL;
}

/* Outside every lock, heap and slow path: no handler that interrupted one of its thread. */
HAK_INLINE bool hak_thread_is_outside(void)
{
    const struct cache *own = hak_own_cache();
    return !hak_lock_is_inside() && !hak_heap_is_held() &&
           (own == NULL || hak_cache_state(own) == CACHE_IDLE);
}

/* From here on nothing else may use the cache: neither a handler nor a copy of the process. */
HAK_INLINE void hak_cache_begin_at(struct cache *cache, uintptr_t here)
{
    if (hak_cache_is_processors(cache))
        return; /* whose bins cannot be found half changed */
    hak_store_relaxed(&cache->state, (here & ~HAK_CACHE_STATES) | CACHE_BUSY);
    hak_compiler_fence();
}

HAK_INLINE void hak_cache_begin(struct cache *cache)
{
    hak_cache_begin_at(cache, (uintptr_t)__builtin_frame_address(0));
}

HAK_INLINE void hak_cache_end(struct cache *cache)
{
    if (hak_cache_is_processors(cache))
        return;
    hak_cache_set_state(cache, CACHE_IDLE);
}

HAK_INLINE struct slow_path hak_slow_path_begin(void)
{
    struct cache *cache = hak_cache_at_rest();
    if (HAK_UNLIKELY(cache == NULL))
        return hak_slow_path_begin_special((uintptr_t)__builtin_frame_address(0));
    hak_cache_begin(cache);
    if (hak_slow_is_clocked())
        return (struct slow_path){.cache = cache, .begun_ns = hak_slow_begin(cache)};
    return (struct slow_path){.cache = cache};
}

/* Where the window is scarce, a block of one of so many larger classes is better than a new slab:
 * hak_take_larger for these. */
#define HAK_TIGHT_CLASSES 16u
HAK_INLINE void *hak_take_tight(struct cache *cache, uint32_t class_index, size_t alignment)
{
    uint32_t limit =
        (uint32_t)hak_least(class_index + HAK_TIGHT_CLASSES, hak_class_end(class_index));
    return hak_take_larger(cache, class_index, limit, alignment);
}

#endif
