/* SPDX-License-Identifier: MIT */
/* process/tick.h - periodic work that threads do for the whole process when they leave a slow path.
 *
 * Owns        when: after a number of slow operations of a thread, or if the last time was long
 *             ago.
 * Invariants  it calls everything that must not wait for a request of its own kind: maintenance,
 *             printing, the background thread. None of these calls it.
 * Threads     any, outside every heap and lock.
 * Tests       tests/unit/process/reclaim_test.c, tests/model/fault_test.c, tests/preload/idle.c
 */
#ifndef HAK_PROCESS_TICK_H
#define HAK_PROCESS_TICK_H

#include "process/slow_path.h"

/* A tick is due after this many slow operations of a thread. Where these are rare, the clock is
 * read once in so many, and a tick is overdue after so long. */
#define HAK_SLOW_OPERATIONS_PER_TICK 64
#define HAK_SLOW_OPERATIONS_PER_LOOK 4
#define HAK_TICK_LATE_MS 50
/* The bins of a cache are checked as at the end of the process (api/exit_check.c) after so many of
 * its slow operations, then after twice as many, and so on up to the most. */
#define HAK_SLOW_OPERATIONS_UNTIL_CHECK 2
#define HAK_SLOW_OPERATIONS_UNTIL_LAST_CHECK 16

/* A thread reads the clock, then maintains its cache and the process if due. */
void hak_tick_look(struct cache *cache);

/* Maintains the process only; for threads that work in user heaps. */
void hak_tick_now(void);

/* After a slow operation. */
HAK_INLINE void hak_tick_count(struct cache *cache)
{
    uint32_t count = hak_load_relaxed(&cache->slow_count) + 1;
    hak_store_relaxed(&cache->slow_count, count);
    if (HAK_UNLIKELY(count % HAK_SLOW_OPERATIONS_PER_LOOK == 0 ||
                     count == HAK_SLOW_OPERATIONS_UNTIL_CHECK))
        hak_tick_look(cache);
}

/* Ends a slow path that was no slow operation: the cache served it. */
HAK_INLINE void hak_slow_path_end_quick(const struct slow_path *path)
{
    if (HAK_LIKELY(path->cache != NULL))
        hak_cache_end(path->cache);
    if (HAK_UNLIKELY(path->is_shielded))
        hak_slow_path_end_special(path);
}

/* Ends the slow path, and ticks if due. */
HAK_INLINE void hak_slow_path_end(const struct slow_path *path)
{
    struct cache *cache = path->cache;
    if (HAK_LIKELY(cache != NULL)) {
        hak_cache_end(cache);
        if (HAK_UNLIKELY(path->begun_ns != 0))
            hak_slow_end(path->begun_ns);
        hak_tick_count(cache);
    }
    if (HAK_UNLIKELY(path->is_shielded))
        hak_slow_path_end_special(path);
}

#endif
