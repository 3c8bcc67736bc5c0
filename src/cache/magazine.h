/* SPDX-License-Identifier: MIT */
/* cache/magazine.h - what the hot path reads: one thread's bins of ready blocks.
 *
 * Owns        struct bin and struct cache_bins. A bin is a stack of block addresses in an array
 *             (the magazine) whose lowest slot holds NULL for ever: the popped value itself says
 *             "empty".
 * Invariants  slots[1..top] are blocks of the bin's class, none twice, of any heap but the
 *             program's own; top <= limit. A state without a cache has top == limit == its
 *             sentinel in every bin (empty and full at once): every call takes the slow way, before
 *             any write.
 *             Pop lowers top after reading the slot, push writes the slot before raising top: a
 *             fork, a jump or a death between two stores leaks a block, it never doubles one. What
 *             moves blocks from slot to slot closes the bin meanwhile (empty and full at once): a
 *             handler that comes in between takes the slow way, and so does a thread that left by
 *             a jump, until its next slow path finds that out. Without that the same block would
 *             be in two slots, or the array in use and free.
 * Threads     the one that has the cache; only cache/ and api/malloc.c know that it is a thread.
 *             Others may count (relaxed, without order: a count may be wrong by what happens
 *             meanwhile). Arrays are never unmapped.
 * Tests       tests/unit/cache/magazine_test.c, tests/golden/
 */
#ifndef HAK_CACHE_MAGAZINE_H
#define HAK_CACHE_MAGAZINE_H

#include "base/atomic.h"
#include "region/tag_map.h"
#include "slab/size_class.h"

struct bin {
    void **top;   /* last filled slot, or the sentinel */
    void **limit; /* last usable slot */
};

struct cache_bins {
    uintptr_t base;         /* of the window */
    size_t committed_bytes; /* of the window, as this thread last saw it */
    _Atomic uint8_t *tags;  /* the tag map */
    uint64_t is_heap;       /* 0 for the states without a heap */
    struct bin none;        /* bin 0: of HAK_TAG_NONE, empty and full */
    struct bin bins[HAK_CLASS_COUNT];
};

/* The calling thread's cache; never NULL. */
extern HAK_TLS struct cache_bins *hak_thread;

/* What a thread has before its first call, and after its last destructor. */
extern struct cache_bins hak_thread_unstarted;
extern struct cache_bins hak_thread_exited;

/* Caches that threads have; the registry counts them. */
extern _Atomic uint32_t hak_active_caches;

/* Finds a bin by its scaled index, as tags and the size table hold it. */
HAK_INLINE struct bin *hak_bin_at(struct cache_bins *cache, size_t scaled)
{
    size_t offset = offsetof(struct cache_bins, none) + scaled * sizeof(struct bin) / HAK_BIN_SCALE;
    return (struct bin *)(void *)((char *)cache + offset);
}

HAK_INLINE void *hak_bin_pop(struct bin *bin)
{
    void **top = bin->top;
    void *block = *top;
    if (HAK_LIKELY(block != NULL))
        hak_word_publish(&bin->top, top - 1);
    return block;
}

HAK_INLINE bool hak_bin_is_full(const struct bin *bin)
{
    return bin->top >= bin->limit;
}

/* The bin is not full. */
HAK_INLINE void hak_bin_push(struct bin *bin, void *block)
{
    void **top = bin->top + 1;
    *top = block;
    hak_compiler_fence();
    hak_word_publish(&bin->top, top);
}

/* What stands behind a bin. */
struct magazine {
    void **slots;       /* slots[0] is the sentinel; NULL: none yet */
    uint16_t capacity;  /* blocks it may hold now */
    uint8_t order;      /* the array has 2^order slots */
    uint8_t miss_count; /* since it last grew */
    bool was_missed;    /* since the last look for quiet bins */
    bool is_grown;      /* to all that its class may have */
};

/* Lets nobody pop or push; returns how many blocks the bin holds. One exchange: a handler pops
 * before it or not at all. The magazine has slots. */
HAK_INLINE uint32_t hak_magazine_close(const struct magazine *magazine, struct bin *bin)
{
    hak_word_publish(&bin->limit, NULL);
    hak_compiler_fence();
    return (uint32_t)(hak_word_exchange(&bin->top, magazine->slots) - magazine->slots);
}

HAK_INLINE void hak_magazine_open(const struct magazine *magazine, struct bin *bin, uint32_t count)
{
    hak_compiler_fence();
    hak_word_publish(&bin->top, magazine->slots + count);
    hak_compiler_fence();
    hak_word_publish(&bin->limit, magazine->slots + magazine->capacity);
    hak_compiler_fence();
}

/* Lets the magazine of `bin` hold `capacity` blocks, at least what it holds now; false: out of
 * memory, all is as before. */
bool hak_magazine_resize(struct magazine *magazine, struct bin *bin, uint32_t capacity);

/* Takes the array of an empty magazine away: the bin stands on `sentinel` again. One that a handler
 * has filled meanwhile keeps it. */
void hak_magazine_remove(struct magazine *magazine, struct bin *bin, void **sentinel);

/* Takes the oldest blocks out of the magazine, which has slots, into `blocks`: `most`, if it holds
 * as many. Returns their number. */
uint32_t hak_magazine_take_oldest(struct magazine *magazine, struct bin *bin, void **blocks,
                                  uint32_t most);

/* Blocks the bin holds, counted by another thread; never more than the capacity. */
HAK_INLINE uint32_t hak_magazine_peek(const struct magazine *magazine, const struct bin *bin)
{
    uintptr_t slots = (uintptr_t)hak_word_peek(&magazine->slots);
    if (slots == 0)
        return 0;
    size_t count = ((uintptr_t)hak_word_peek(&bin->top) - slots) / sizeof(void *);
    return count <= hak_word_peek(&magazine->capacity) ? (uint32_t)count : 0;
}

/* Blocks the bin holds. */
HAK_INLINE uint32_t hak_magazine_count(const struct magazine *magazine, const struct bin *bin)
{
    return magazine->slots == NULL ? 0 : (uint32_t)(bin->top - magazine->slots);
}

#endif
