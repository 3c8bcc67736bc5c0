/* SPDX-License-Identifier: MIT */
/* cache/heap.h - one thread's slabs, bins and frees under way.
 *
 * Owns        struct heap: partial slabs by class and fullness, one spare empty slab per class, the
 *             magazines behind the bins, the combining table, the pending stack.
 * Invariants  a slab is on exactly one list if it has free blocks and is not being worked on; a
 *             full slab is on none, or in a private heap on `full`; each class keeps at most
 *             one empty slab (spare). Records of heaps are never freed: a heap without a thread is
 *             parked and waits to be adopted, whole.
 * Threads     the owner, inside the gate; line by line what strangers touch is marked.
 * Tests       tests/unit/cache/heap_test.c, tests/model/, tests/race/
 */
#ifndef HAK_CACHE_HEAP_H
#define HAK_CACHE_HEAP_H

#include "cache/combine.h"
#include "cache/gate.h"
#include "cache/magazine.h"
#include "cache/supply.h"
#include "observe/stat.h"
#include "slab/remote.h"
#include "span/span_cache.h"

enum heap_state { HEAP_ACTIVE, HEAP_PARKED, HEAP_FROZEN, HEAP_PRIVATE };

struct heap {
    struct thread_cache cache; /* first: the thread's pointer points here */
    void *sentinel;            /* NULL: bins without a magazine stand on it */
    uint32_t number;           /* for people, from 1 on */
    uint32_t slow_count;       /* slow operations, for the tick */
    uint64_t tick_ms;          /* when its thread last looked after it */
    int64_t guard_left_bytes;  /* until an allocation is put against a guard page */
    size_t capacity_bytes;     /* what all magazines may hold */
    uint64_t quiet_check_ms;   /* when bins were last looked through for quiet ones */
    uint64_t sweep_start_ms;   /* when the last pass over sparse slabs began (cache/sweep.h) */
    _Atomic uint64_t sweep_visit_ms; /* when it last went on */
    _Atomic uint64_t idle_mark;      /* slow operations when it was last looked at (cache/idle.h) */
    _Atomic uint64_t passed_ms; /* begin of visitors' last sweep; 0: it goes on; UINT64_MAX: none */
    _Atomic uint64_t passed_mark; /* slow operations and frees come home then */
    uint32_t fruitless_passes;    /* of visitors, since these were fewer */
    uint32_t relief_count;        /* of the process, when the owner last emptied its bins for it */
    uint32_t sweep_class;         /* where it stands; HAK_CLASS_COUNT: it is over */
    struct magazine magazines[HAK_CLASS_COUNT];
    uint8_t partial_mask[HAK_CLASS_COUNT];   /* bit o: partial[class][o] is not empty */
    uint32_t partial_count[HAK_CLASS_COUNT]; /* slabs on those lists */
    struct slab *spare[HAK_CLASS_COUNT];
    struct list_link partial[HAK_CLASS_COUNT][HAK_OCTILES];
    struct list_link full; /* full slabs, when the heap is private */
    struct combine combine;
    struct span_cache spans; /* that large blocks left */
    struct stat_block stats; /* strangers read */

    HAK_CACHE_ALIGNED struct slab_owner owner; /* strangers push */
    HAK_CACHE_ALIGNED struct gate gate;        /* strangers claim */
    _Atomic uint32_t state; /* enum heap_state; changes under the registry's lock */
    struct heap *next;      /* all heaps; constant once published */
    struct heap *parked_next;
    bool is_drained;               /* while parked: nothing is left to give back */
    _Atomic uint64_t parked_ms;    /* when it was parked last */
    size_t parked_bytes;           /* what its bins may hold while it is parked */
    struct quarantine *quarantine; /* in hardened mode, from the first free on */
    struct heap *outer;            /* what else is lent to this thread, when this one is */
    uint32_t generation; /* of the process that the owner lives in: forks since the first */
};

/* Fills an empty record (zeroed) as heap `id`. */
void hak_heap_start(struct heap *heap, uint32_t id);

/* One block of the class from the heap's slabs, with its bin filled on the way; NULL: out of
 * memory. The gate is held. */
void *hak_heap_refill(struct heap *heap, uint32_t class_index);

/* One block of this or a larger class, aligned to `alignment`, from what the heap has already;
 * NULL: nothing of the sort. For times when no new slab can or should be had. The gate is held. */
void *hak_heap_take_larger(struct heap *heap, uint32_t class_index, uint32_t class_limit,
                           size_t alignment);

/* One block of the class past the bin, untouched memory if the slab in turn has any: *is_zero tells
 * whether it reads as zero. NULL: out of memory. The gate is held. */
void *hak_heap_take_one(struct heap *heap, uint32_t class_index, bool *is_zero);

/* One block of the class past the bin, memory that was used before if there is any. NULL: out of
 * memory. The gate, or the lock of a private heap, is held. */
void *hak_heap_take_used(struct heap *heap, uint32_t class_index);

/* Makes room in a full bin: more slots, or half of its blocks go home, oldest first. Gate held. */
void hak_heap_flush(struct heap *heap, uint32_t class_index);

/* Gives one block back to its slab, which is the heap's own, past the bin. Gate held. */
void hak_heap_give(struct heap *heap, struct slab *slab, void *block);

/* What the heap's span cache may hold: a share of the most large blocks that there ever were. */
size_t hak_heap_span_cache_most(void);

/* Gives back all that is in the heap's span cache. Gate held. */
void hak_heap_drop_spans(struct heap *heap);

/* Sends every cached block, span and combined remote free home. Gate held. */
void hak_heap_flush_all(struct heap *heap);

/* Collects remote frees that have arrived. Gate held. */
void hak_heap_collect(struct heap *heap);

/* Gives the spare empty slab of a class, or those of all classes, back to the depot. Gate held. */
void hak_heap_retire_spare(struct heap *heap, uint32_t class_index);
void hak_heap_retire_spares(struct heap *heap);

/* Collects, then gives the empty slabs and the cached spans back: all that can be done for a heap
 * without its bins. Gate held. */
void hak_heap_tidy(struct heap *heap);

/* Looks through the bins, at most once in a while: shrinks those that are quiet, and empties those
 * whose blocks pin pages of sparse slabs. Gate held. */
void hak_heap_shrink_quiet(struct heap *heap, uint64_t now_ms);

/* Takes a slab of the class with free blocks out of a parked heap that the caller holds; NULL: it
 * has none. */
struct slab *hak_heap_surrender(struct heap *parked, uint32_t class_index);

/* Makes a surrendered slab the heap's own: owner first, then tags, then the list. False: it was
 * empty and the heap has such a one: it went to the depot. */
bool hak_heap_receive(struct heap *heap, struct slab *slab);

/* What lies free in the heap's slabs, by blocks. */
size_t hak_heap_free_bytes(const struct heap *heap);

/* True when lists, masks and slabs agree. Gate held. */
bool hak_heap_is_sound(struct heap *heap);

/* The calling thread's heap; NULL: it has none, yet or any more. */
HAK_INLINE struct heap *hak_own_heap(void)
{
    struct thread_cache *cache = hak_thread;
    return cache->is_heap ? (struct heap *)(void *)cache : NULL;
}

/* The heap whose part `owner` is. */
HAK_INLINE struct heap *hak_heap_of(struct slab_owner *owner)
{
    return (struct heap *)(void *)((char *)owner - offsetof(struct heap, owner));
}

#endif
