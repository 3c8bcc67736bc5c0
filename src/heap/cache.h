/* SPDX-License-Identifier: MIT */
/* heap/cache.h - the bins of one processor or thread, and their bookkeeping.
 *
 * Owns        struct cache: where the bins are, how many slots each has, and when the cache was
 *             last maintained. Blocks come from any heap and return to their own.
 * Invariants  a block is in one bin, held by a thread, or in a slab. Records are never freed.
 *             Blocks flushed from a processor's bins count as `in_flight`, for which a fork waits.
 * Threads     of a slot, the thread that has it. Of a processor, all that run on it, whenever one
 *             interrupts the other: bins change by sequences only (heap/cpu_cache.h), slots under
 *             the lock CACHES, and the rest are hints or atomic.
 * Tests       tests/unit/heap/heap_test.c, tests/model/, tests/race/, tests/preload/rseq.c
 */
#ifndef HAK_HEAP_CACHE_H
#define HAK_HEAP_CACHE_H

#include "heap/bins.h"
#include "heap/draw.h"
#include "stats/counters.h"

/* CACHE_BUSY: the thread of the slot is in a slow path, which may be changing it. */
enum cache_state { CACHE_IDLE, CACHE_BUSY, CACHE_WAITS };
enum cache_place { CACHE_IN_USE, CACHE_FREE, CACHE_LOST, CACHE_OF_PROCESSOR };

/* The slots of one bin. */
struct room {
    uint16_t bottom;    /* the word with the NULL, its last one; 0: none yet */
    uint8_t order;      /* it has 2^order words */
    uint8_t miss_count; /* since it last grew */
    bool was_missed;    /* since the last look for quiet bins */
    bool was_flushed;   /* and no refill came since */
    bool is_grown;      /* to all that its class may have */
    uint8_t lent_count; /* requests that blocks of a longer class served (heap/refill.h) */
};
#define HAK_ROOM_ORDERS 16

struct cache {
    struct rseq_area here;            /* of a slot: its thread's hak_here points to it. First. */
    struct bins *bins;                /* peeked at */
    uint32_t id;                      /* of the processor or the slot */
    uint32_t place;                   /* enum cache_place; peeked at. Under the lock CACHES */
    _Atomic uintptr_t state;          /* enum cache_state, and where the slow path's stack began */
    _Atomic int32_t in_flight;        /* threads that hold blocks of it; may be too low */
    _Atomic uint32_t slow_count;      /* slow operations, for the tick */
    _Atomic uint32_t relief_count;    /* of the process, when its bins were last emptied */
    _Atomic uint64_t tick_ms;         /* when it was last maintained */
    _Atomic int64_t guard_left_bytes; /* until an allocation is placed against a guard page */
    _Atomic uint64_t quiet_check_ms;  /* when bins were last checked for quiet ones */
    uint64_t seen_sum;                /* of all bins, when a processor's cache was last checked */
    uint64_t seen_ms;                 /* since when it is the same */
    size_t capacity_bytes; /* what all bins may hold; peeked at. Under the lock CACHES, as below */
    uint32_t word_count;   /* of the bins' memory */
    uint32_t used_words;   /* of these, in rooms or behind them */
    uint16_t free_rooms[HAK_ROOM_ORDERS];         /* by order; each room's last word is the next */
    struct room rooms[HAK_ALL_CLASS_COUNT];       /* counts and flags: hints */
    _Atomic uint64_t popped[HAK_ALL_CLASS_COUNT]; /* less countdown: blocks that were popped */
    _Atomic uint8_t drawn[HAK_ALL_CLASS_COUNT];   /* enum draw_state of its countdown */
    _Atomic(struct quarantine *) quarantine;      /* in hardened mode, from the first free on */
    struct stat_block stats;                      /* any thread reads */
    struct cache *next;                           /* all caches; constant once published */
    struct cache *next_free;
    uint32_t generation; /* of the process that its thread lives in: forks since the first */
    uint64_t free_ms;    /* since when it is free, and what its bins may hold meanwhile */
    size_t free_bytes;
    void *last_slow; /* in hardened mode: a block, and its heap (hardened/look_back.h) */
    struct heap *last_slow_heap;
};

/* Frames are aligned to 16 bytes. In one word: no handler sees the state with an older frame. */
#define HAK_CACHE_STATES ((uintptr_t)15)

HAK_INLINE enum cache_state hak_cache_state(const struct cache *cache)
{
    return (enum cache_state)(hak_load_relaxed(&cache->state) & HAK_CACHE_STATES);
}

HAK_INLINE uintptr_t hak_cache_frame(const struct cache *cache)
{
    return hak_load_relaxed(&cache->state) & ~HAK_CACHE_STATES;
}

HAK_INLINE void hak_cache_set_state(struct cache *cache, enum cache_state state)
{
    hak_compiler_fence();
    hak_store_relaxed(&cache->state, hak_cache_frame(cache) | state);
    hak_compiler_fence();
}

HAK_INLINE bool hak_cache_is_processors(const struct cache *cache)
{
    return hak_id_is_processor(cache->id);
}

HAK_INLINE struct bins *hak_cache_bins(const struct cache *cache)
{
    /* acquire: partner is the release when the bins moved (heap/rooms.c) */
    return __atomic_load_n(&cache->bins, __ATOMIC_ACQUIRE);
}

/* Blocks in the bin of a class; of a cache that others change, about so many. */
HAK_INLINE uint32_t hak_cache_count(const struct cache *cache, uint32_t class_index)
{
    struct bins *bins = hak_cache_bins(cache);
    return hak_bin_peek(hak_bin_of(bins, class_index),
                        hak_word_peek(&cache->rooms[class_index].bottom));
}

/* Blocks that the bin of a class may hold. */
HAK_INLINE uint32_t hak_cache_capacity(const struct cache *cache, uint32_t class_index)
{
    struct bins *bins = hak_cache_bins(cache);
    uint32_t limit = hak_word_peek(&hak_bin_of(bins, class_index)->limit);
    uint32_t bottom = hak_word_peek(&cache->rooms[class_index].bottom);
    return limit != 0 && bottom > limit ? bottom - limit : 0;
}

/* The newest blocks of a bin, up to `most`; of the processor that the thread runs on, or of a slot
 * that is the caller's. Or as many pushed as there is room for, from the last on, so that the first
 * is on top if all are. Returns how many. */
uint32_t hak_cache_pop_some(struct cache *cache, uint32_t class_index, void **blocks,
                            uint32_t most);
uint32_t hak_cache_push_some(struct cache *cache, uint32_t class_index, void *const *blocks,
                             uint32_t count);

/* Makes room in a full bin: more slots, or half of its blocks or more are flushed. No heap is held,
 * as for all below, and a slot is busy. */
void hak_cache_flush(struct cache *cache, uint32_t class_index);

void hak_cache_flush_all(struct cache *cache); /* flushes every cached block */
void hak_cache_flush_class(struct cache *cache, uint32_t class_index); /* or all of one class */
void hak_cache_drain_sparse(struct cache *cache, uint32_t but_class);  /* or sparse classes' bins */
void hak_cache_check(struct cache *cache); /* checks every cached block; misuse is reported */
/* Checks the bins, at most once in a while: shrinks quiet ones, and empties those whose blocks pin
 * pages of sparse slabs. */
void hak_cache_shrink_quiet(struct cache *cache, uint64_t now_ms);

bool hak_cache_is_sound(struct cache *cache); /* true when rooms and bins agree */

/* The cache that the calling thread uses now; NULL: none, yet or any more. Of a processor: the
 * thread may be elsewhere a moment later. */
HAK_INLINE struct cache *hak_own_cache(void)
{
    uint32_t id = hak_here_id();
    if (HAK_LIKELY(hak_id_is_processor(id)))
        return hak_word_peek(&hak_bins_of[id])->cache;
    return id == HAK_ID_CLOSED ? NULL : (struct cache *)(void *)hak_here;
}

extern _Atomic uint32_t hak_active_caches; /* in use: of processors that have one, of threads */

#endif
