/* SPDX-License-Identifier: MIT */
/* cache/heap.h - slabs by class and by how full they are.
 *
 * Owns        struct heap: partial slabs by class and fullness, one spare empty slab per class,
 *             free spans, the pending stack.
 * Invariants  a slab is on exactly one list if it has free blocks and is not being worked on; a
 *             full slab is on none, or in a private heap on `full`; each class keeps at most
 *             one empty slab (spare). Records of heaps are never freed: a heap without a thread is
 *             parked and waits to be adopted, whole.
 * Threads     the owner, inside the gate; line by line what strangers touch is marked.
 * Tests       tests/unit/cache/heap_test.c, tests/model/, tests/race/
 */
#ifndef HAK_CACHE_HEAP_H
#define HAK_CACHE_HEAP_H

#include "cache/gate.h"
#include "cache/supply.h"
#include "observe/stat.h"
#include "slab/remote.h"
#include "span/span_cache.h"

enum heap_state { HEAP_ACTIVE, HEAP_PARKED, HEAP_FROZEN, HEAP_PRIVATE };

struct heap {
    uint64_t sweep_start_ms; /* when the last pass over sparse slabs began (cache/sweep.h) */
    _Atomic uint64_t sweep_visit_ms; /* when it last went on */
    _Atomic uint64_t idle_mark;      /* slow operations when it was last looked at (cache/idle.h) */
    _Atomic uint64_t passed_ms; /* begin of visitors' last sweep; 0: it goes on; UINT64_MAX: none */
    _Atomic uint64_t passed_mark;            /* slow operations and frees come home then */
    uint32_t fruitless_passes;               /* of visitors, since these were fewer */
    uint32_t sweep_class;                    /* where it stands; HAK_CLASS_COUNT: it is over */
    uint8_t partial_mask[HAK_CLASS_COUNT];   /* bit o: partial[class][o] is not empty */
    uint32_t partial_count[HAK_CLASS_COUNT]; /* slabs on those lists */
    struct slab *spare[HAK_CLASS_COUNT];
    struct list_link partial[HAK_CLASS_COUNT][HAK_OCTILES];
    struct list_link full;   /* full slabs, when the heap is private */
    struct span_cache spans; /* that large blocks left */
    struct stat_block stats; /* strangers read */

    HAK_CACHE_ALIGNED struct slab_owner owner; /* strangers push */
    HAK_CACHE_ALIGNED struct gate gate;        /* strangers claim */
    _Atomic uint32_t state; /* enum heap_state; changes under the registry's lock */
    struct heap *next;      /* all heaps; constant once published */
    struct heap *parked_next;
    bool is_drained;            /* while parked: nothing is left to give back */
    _Atomic uint64_t parked_ms; /* when it was parked last */
    size_t parked_bytes;        /* what its bins may hold while it is parked */
    struct heap *outer;         /* what else is lent to this thread, when this one is */
    uint32_t generation;        /* of the process that the owner lives in: forks since the first */
};

/* Fills an empty record (zeroed). */
void hak_heap_start(struct heap *heap);

/* The fullest partial slab of the class; NULL: there is none. */
struct slab *hak_heap_densest(struct heap *heap, uint32_t class_index);

/* Puts a slab where it belongs after its number of free blocks changed; false: it was empty and
 * went to the depot. Gate held. */
bool hak_heap_settle(struct heap *heap, struct slab *slab);

/* Gives back as many of `count` blocks as lie in this slab of the heap's, up to the first that does
 * not; the first of them does. Returns their number. Gate held. */
uint32_t hak_heap_give_run(struct heap *heap, struct slab *slab, void *const *blocks,
                           uint32_t count);

/* Gives one block back to its slab, which is the heap's own. Gate held. */
void hak_heap_give(struct heap *heap, struct slab *slab, void *block);

/* Gives back all that is in the heap's span cache. Gate held. */
void hak_heap_drop_spans(struct heap *heap);

/* Collects remote frees that have arrived. Gate held. */
void hak_heap_collect(struct heap *heap);

/* Gives the spare empty slab of a class, or those of all classes, back to the depot. Gate held. */
void hak_heap_retire_spare(struct heap *heap, uint32_t class_index);
void hak_heap_retire_spares(struct heap *heap);

/* Collects, then gives the empty slabs and the cached spans back: all that can be done for a heap
 * without its bins. Gate held. */
void hak_heap_tidy(struct heap *heap);

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

/* The heap whose part `owner` is. */
HAK_INLINE struct heap *hak_heap_of(struct slab_owner *owner)
{
    return (struct heap *)(void *)((char *)owner - offsetof(struct heap, owner));
}

#endif
