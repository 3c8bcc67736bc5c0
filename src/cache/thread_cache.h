/* SPDX-License-Identifier: MIT */
/* cache/thread_cache.h - one thread's bins, and what stands behind them.
 *
 * Owns        struct thread_cache: the bins, their magazines, and when the thread last looked after
 *             all that. Blocks come from any heap and go back to the heaps they are of.
 * Invariants  a block is in one bin, in the thread's hands, or in a slab. A record is never freed:
 *             one without a thread waits for the next, whole (cache/cache_list.h).
 * Threads     the thread that has it; others may count what is in it.
 * Tests       tests/unit/cache/heap_test.c, tests/model/, tests/race/
 */
#ifndef HAK_CACHE_THREAD_CACHE_H
#define HAK_CACHE_THREAD_CACHE_H

#include "cache/magazine.h"
#include "observe/stat.h"

/* CACHE_BUSY: its thread is in a slow path, which may be changing it. */
enum cache_state { CACHE_IDLE, CACHE_BUSY, CACHE_WAITS };
enum cache_place { CACHE_IN_USE, CACHE_FREE, CACHE_LOST };

struct thread_cache {
    struct cache_bins hot;    /* first: the thread's pointer points here */
    void *sentinel;           /* NULL: bins without a magazine stand on it */
    _Atomic uintptr_t state;  /* enum cache_state, and where the slow path's stack began */
    uint32_t slow_count;      /* slow operations, for the tick */
    uint32_t relief_count;    /* of the process, when its bins were last emptied for it */
    uint64_t tick_ms;         /* when its thread last looked after it */
    int64_t guard_left_bytes; /* until an allocation is put against a guard page */
    size_t capacity_bytes;    /* what all magazines may hold */
    uint64_t quiet_check_ms;  /* when bins were last looked through for quiet ones */
    struct magazine magazines[HAK_CLASS_COUNT];
    _Atomic(struct quarantine *) quarantine; /* in hardened mode, from the first free on */
    struct stat_block stats;                 /* anybody reads */

    struct thread_cache *next; /* all caches; constant once published */
    struct thread_cache *next_free;
    uint32_t place;      /* enum cache_place; peeked at. Under the lock CACHES, as all below */
    uint32_t generation; /* of the process that its thread lives in: forks since the first */
    uint64_t free_ms;    /* since when it is free, and what its bins may hold meanwhile */
    size_t free_bytes;
};

/* Frames are aligned to 16 bytes. Both in one word: no handler sees a slow path that has begun with
 * the frame of one that is over. */
#define HAK_CACHE_STATES ((uintptr_t)15)

HAK_INLINE enum cache_state hak_cache_state(const struct thread_cache *cache)
{
    return (enum cache_state)(hak_load_relaxed(&cache->state) & HAK_CACHE_STATES);
}

HAK_INLINE uintptr_t hak_cache_frame(const struct thread_cache *cache)
{
    return hak_load_relaxed(&cache->state) & ~HAK_CACHE_STATES;
}

/* The frame stays. */
HAK_INLINE void hak_cache_set_state(struct thread_cache *cache, enum cache_state state)
{
    hak_compiler_fence();
    hak_store_relaxed(&cache->state, hak_cache_frame(cache) | state);
    hak_compiler_fence();
}

/* Fills an empty record (zeroed). */
void hak_cache_start(struct thread_cache *cache);

/* Makes room in a full bin: more slots, or half of its blocks go home, oldest first. The cache is
 * busy and no heap is held, as for all below. */
void hak_cache_flush(struct thread_cache *cache, uint32_t class_index);

/* Sends every cached block home. */
void hak_cache_flush_all(struct thread_cache *cache);

/* Looks through the bins, at most once in a while: shrinks those that are quiet, and empties those
 * whose blocks pin pages of sparse slabs. */
void hak_cache_shrink_quiet(struct thread_cache *cache, uint64_t now_ms);

/* True when magazines and bins agree. */
bool hak_cache_is_sound(struct thread_cache *cache);

/* The calling thread's cache; NULL: it has none, yet or any more. */
HAK_INLINE struct thread_cache *hak_own_cache(void)
{
    struct cache_bins *bins = hak_thread;
    return bins->is_heap ? (struct thread_cache *)(void *)bins : NULL;
}

#endif
