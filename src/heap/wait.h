/* SPDX-License-Identifier: MIT */
/* heap/wait.h - a slow path that waits for a lock.
 *
 * Owns        nothing.
 * Invariants  the thread holds no block of its cache, and none of its bins is closed: a copy of the
 *             process that is made meanwhile finds the cache consistent.
 * Threads     the one that waits.
 * Tests       tests/unit/heap/heaps_test.c, tests/preload/fork.c
 */
#ifndef HAK_HEAP_WAIT_H
#define HAK_HEAP_WAIT_H

#include "heap/cache.h"

/* To be ended with what this returns. */
HAK_INLINE struct cache *hak_wait_begin(void)
{
    struct cache *cache = hak_own_cache();
    if (cache == NULL || hak_cache_state(cache) != CACHE_BUSY)
        return NULL;
    hak_cache_set_state(cache, CACHE_WAITS);
    return cache;
}

HAK_INLINE void hak_wait_end(struct cache *cache)
{
    if (cache != NULL)
        hak_cache_set_state(cache, CACHE_BUSY);
}

#endif
