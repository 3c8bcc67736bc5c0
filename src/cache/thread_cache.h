/* SPDX-License-Identifier: MIT */
/* cache/thread_cache.h - one thread's bins, and what stands behind them.
 *
 * Owns        struct thread_cache: the bins, their magazines, frees of others' blocks under way,
 *             and when the thread last looked after all that. Blocks come from its heap and go back
 *             there, or to the heaps they are of.
 * Invariants  a block is in one bin, in the combining table, or in a slab. A record is never freed:
 *             one without a thread is parked and waits to be adopted, whole.
 * Threads     the owner, inside the gate; who holds a claim on that may count.
 * Tests       tests/unit/cache/heap_test.c, tests/model/, tests/race/
 */
#ifndef HAK_CACHE_THREAD_CACHE_H
#define HAK_CACHE_THREAD_CACHE_H

#include "cache/combine.h"
#include "cache/heap.h"
#include "cache/magazine.h"

struct thread_cache {
    struct cache_bins hot;    /* first: the thread's pointer points here */
    void *sentinel;           /* NULL: bins without a magazine stand on it */
    uint32_t slow_count;      /* slow operations, for the tick */
    uint32_t relief_count;    /* of the process, when its bins were last emptied for it */
    uint64_t tick_ms;         /* when its thread last looked after it */
    int64_t guard_left_bytes; /* until an allocation is put against a guard page */
    size_t capacity_bytes;    /* what all magazines may hold */
    uint64_t quiet_check_ms;  /* when bins were last looked through for quiet ones */
    struct magazine magazines[HAK_CLASS_COUNT];
    struct combine combine;
    struct quarantine *quarantine; /* in hardened mode, from the first free on */
    struct heap heap;
};

/* Fills an empty record (zeroed). */
void hak_cache_start(struct thread_cache *cache);

/* Makes room in a full bin: more slots, or half of its blocks go home, oldest first. The gate is
 * held, as for all below. */
void hak_cache_flush(struct thread_cache *cache, uint32_t class_index);

/* Sends every cached block, span and combined remote free home. */
void hak_cache_flush_all(struct thread_cache *cache);

/* Looks through the bins, at most once in a while: shrinks those that are quiet, and empties those
 * whose blocks pin pages of sparse slabs. */
void hak_cache_shrink_quiet(struct thread_cache *cache, uint64_t now_ms);

/* What the cache of free spans may hold: a share of the most large blocks that there ever were. */
size_t hak_cache_spans_most(void);

/* True when magazines and bins agree, and the heap is sound. */
bool hak_cache_is_sound(struct thread_cache *cache);

/* The cache whose heap it is, which is no private one. */
HAK_INLINE struct thread_cache *hak_cache_of(struct heap *heap)
{
    return (struct thread_cache *)(void *)((char *)heap - offsetof(struct thread_cache, heap));
}

/* The calling thread's cache, and its heap; NULL: it has none, yet or any more. */
HAK_INLINE struct thread_cache *hak_own_cache(void)
{
    struct cache_bins *bins = hak_thread;
    return bins->is_heap ? (struct thread_cache *)(void *)bins : NULL;
}

HAK_INLINE struct heap *hak_own_heap(void)
{
    struct thread_cache *cache = hak_own_cache();
    return cache != NULL ? &cache->heap : NULL;
}

#endif
