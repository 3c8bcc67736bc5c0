/* SPDX-License-Identifier: MIT */
/* heap/heap.h - slabs by class and fullness, behind a lock.
 *
 * Owns        struct heap: partial slabs by class and fullness, some empty (spare) ones, free
 *             spans, the stack of slabs with frees to collect.
 * Invariants  a slab is on exactly one list if it has free blocks and is not being worked on; a
 *             full slab is on none, or in a user heap on `full`. A user heap keeps one empty slab
 *             of a class at most. Records of heaps are never freed. A slab that is out (being
 *             purged) stays the heap's own, whatever is freed to it, until it is collected.
 * Threads     the thread that holds the lock (heap/heaps.h). Members that others may read or write
 *             are marked.
 * Tests       tests/unit/heap/heap_test.c, tests/model/, tests/race/
 */
#ifndef HAK_HEAP_HEAP_H
#define HAK_HEAP_HEAP_H

#include "heap/supply.h"
#include "os/lock.h"
#include "slab/remote.h"
#include "span/span_cache.h"
#include "stats/counters.h"

/* HEAP_LOST: left half changed by a jump, or by a thread that this copy of the process lacks. It is
 * never entered again; frees into it are accepted, nothing is taken from it. */
enum heap_state { HEAP_OPEN, HEAP_LOST };

enum sweep { SWEEP_PASS, SWEEP_WHOLE, SWEEPS };

/* Where a sweep goes on: at the slab, or if it has none, with the first one of the class from that
 * fullness bucket on. */
struct sweep_place {
    struct slab *slab;
    uint32_t class_index; /* HAK_ALL_CLASS_COUNT: it is over; peeked at */
    uint32_t fullness_bucket;
};

/* The most empty slabs that are given up at once. */
#define HAK_SPARES_AT_ONCE 16u

/* Granules of the empty slabs of all heaps. */
extern _Atomic uint32_t hak_spare_granules;

struct heap {
    struct hak_lock lock;
    _Atomic uint32_t state;          /* enum heap_state */
    _Atomic uint64_t wait_count;     /* of threads for the lock */
    bool is_claimed;                 /* by the fork in progress */
    uintptr_t before;                /* what the thread inside had noted before (heap/heaps.h) */
    _Atomic uint64_t enter_count;    /* written inside; any thread reads */
    uint64_t sweep_start_ms;         /* when the last pass over sparse slabs began (heap/sweep.h) */
    _Atomic uint64_t sweep_visit_ms; /* when it last continued; any thread reads */
    uint32_t sweep_pass;             /* how many passes have begun */
    uint32_t collect_count;          /* refills, for how often frees are collected */
    struct sweep_place sweeps[SWEEPS];           /* where they stand */
    uint8_t partial_mask[HAK_ALL_CLASS_COUNT];   /* bit o: partial[class][o] has some; peeked at */
    uint32_t partial_count[HAK_ALL_CLASS_COUNT]; /* slabs on those lists; peeked at */
    uint16_t spare_count[HAK_ALL_CLASS_COUNT];   /* empty slabs; peeked at */
    uint32_t spare_granules;                     /* of all of them; peeked at */
    struct list_link full;                       /* full slabs, in a user heap */
    struct span_cache spans;                     /* of freed large blocks */
    struct stat_block stats;                     /* anybody reads */

    HAK_CACHE_ALIGNED struct slab_owner owner; /* any thread pushes */

    /* Behind the rest: most classes' lists are never touched. */
    HAK_CACHE_ALIGNED struct list_link partial[HAK_ALL_CLASS_COUNT][HAK_FULLNESS_BUCKETS];
    struct list_link spares[HAK_ALL_CLASS_COUNT]; /* emptied last first */
};

/* Fills an empty record (zeroed). */
void hak_heap_start(struct heap *heap);

/* The fullest partial slab of the class; NULL: there is none. */
struct slab *hak_heap_densest(struct heap *heap, uint32_t class_index);

/* The slab of the class that was emptied last; NULL: there is none. */
struct slab *hak_heap_spare(struct heap *heap, uint32_t class_index);

/* Moves a slab to its list after its number of free blocks changed; false: it was empty and went to
 * the pool. */
bool hak_heap_settle(struct heap *heap, struct slab *slab);

/* Blocks were returned to the slab, and it stays on its list: hak_heap_settle has nothing to do. */
HAK_INLINE bool hak_heap_is_settled(const struct slab *slab)
{
    return slab->used >= slab->settled_from;
}

/* The sweep goes on behind its slab. A slab that leaves its list is passed in this way, too. */
void hak_heap_sweep_past(struct heap *heap, struct sweep_place *place);

/* The sweep goes on with a class, or is over. */
HAK_INLINE void hak_heap_sweep_begin(struct sweep_place *place, uint32_t class_index)
{
    place->slab = NULL;
    place->fullness_bucket = 0;
    hak_word_publish(&place->class_index, class_index);
}

/* No sweep is in progress. */
void hak_heap_end_sweeps(struct heap *heap);

/* Returns one block to its slab, which is the heap's own. */
void hak_heap_give(struct heap *heap, struct slab *slab, void *block);

/* Takes a listed slab out: from now on no block of it is allocated. */
void hak_heap_take_out(struct heap *heap, struct slab *slab);

/* Pushes it on the stack of its heap, from outside. */
void hak_heap_bring_back(struct slab *slab);

/* Collects remote frees that have arrived, and slabs that were brought back. */
void hak_heap_collect(struct heap *heap);

/* Returns at most so many empty slabs to the pool; how many they were. */
uint32_t hak_heap_retire_spares(struct heap *heap, uint32_t most);

/* Returns those of the class that nothing was taken from since the last call to the pool. */
void hak_heap_retire_quiet(struct heap *heap, uint32_t class_index);

/* Collects, then returns the empty slabs and the cached spans: all that can be done for a heap
 * without its bins. */
void hak_heap_tidy(struct heap *heap);

/* Takes a slab of the class with free blocks out of the heap; NULL: it has none. */
struct slab *hak_heap_surrender(struct heap *from, uint32_t class_index);

/* Makes a surrendered slab the heap's own, while the lock of the heap that it came from is held,
 * too. False: it was empty and went to the pool. */
bool hak_heap_receive(struct heap *heap, struct slab *slab);

/* Free bytes in the heap's slabs, by blocks. */
size_t hak_heap_free_bytes(const struct heap *heap);

/* True when lists, masks and slabs agree. */
bool hak_heap_is_sound(struct heap *heap);

/* The heap whose part `owner` is. */
HAK_INLINE struct heap *hak_heap_of(struct slab_owner *owner)
{
    return (struct heap *)(void *)((char *)owner - offsetof(struct heap, owner));
}

#endif
