/* SPDX-License-Identifier: MIT */
/* span/span_lock.h - the locks of the free spans.
 *
 * Owns        a lock for each span set (span/span_free.h): that of set 0, of rank SPAN, which is
 *             also that of all that is no set's; those of the others, of rank SPAN_SET.
 * Invariants  a set's lock is held for every access to its spans; SPAN for every access to clean
 *             and bare spans, to groups of large blocks, to the log of span/big_cache.h, and to the
 *             pace of span/huge_blocks.c; none across a system call. A thread has the lock of one
 *             set, or of all, and may take SPAN then.
 * Threads     any.
 * Tests       tests/race/span_race.c
 */
#ifndef HAK_SPAN_SPAN_LOCK_H
#define HAK_SPAN_SPAN_LOCK_H

#include "os/lock.h"

#define HAK_SPAN_SETS 16u
/* Heaps have sets from so many waits for SPAN on, at first. */
#define HAK_SPAN_SET_WAITS 64u
extern _Atomic uint64_t hak_span_set_waits;

/* On a line of its own. */
struct span_lock {
    HAK_CACHE_ALIGNED struct hak_lock lock;
};
extern struct span_lock hak_span_locks[HAK_SPAN_SETS];

HAK_INLINE void hak_span_lock_set(uint32_t set)
{
    hak_lock_take(&hak_span_locks[set].lock);
}

HAK_INLINE void hak_span_unlock_set(uint32_t set)
{
    hak_lock_give(&hak_span_locks[set].lock);
}

HAK_INLINE void hak_span_lock(void)
{
    hak_span_lock_set(0);
}

HAK_INLINE void hak_span_unlock(void)
{
    hak_span_unlock_set(0);
}

/* All but SPAN, which is to be taken next. */
void hak_span_lock_sets(void);
void hak_span_unlock_sets(void);
void hak_span_reset_sets(void); /* in the child of a fork: they are free again */

/* Whether heaps have sets now. */
HAK_INLINE bool hak_span_has_sets(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_lock_waits[HAK_LOCK_SPAN].count) >=
                        hak_load_relaxed(&hak_span_set_waits));
}

/* The set of the heap with this id; 0, which is everybody's: it has none, or there is no heap. */
HAK_INLINE uint32_t hak_span_set_of(uint32_t heap_id)
{
    if (!hak_span_has_sets() || heap_id == 0)
        return 0;
    return 1 + (heap_id - 1) % (HAK_SPAN_SETS - 1);
}

/* Some thread holds it at this moment. */
HAK_INLINE bool hak_span_lock_is_busy(uint32_t set)
{
    return hak_load_relaxed(&hak_span_locks[set].lock.state) != 0;
}

#endif
