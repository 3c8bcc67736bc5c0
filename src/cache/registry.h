/* SPDX-License-Identifier: MIT */
/* cache/registry.h - all heaps there are, and those that wait for a thread.
 *
 * Owns        the list of all heaps (only ever growing) and the stack of parked ones.
 * Invariants  a parked heap belongs to who holds the registry's lock; adopting it, or taking one
 *             slab out of it, or collecting for it, happens under that lock, so that these exclude
 *             each other. Claims of gates are made under it, too, and gates closed. A heap is an
 *             orphan if it is active in a generation before this process's; only its gate is looked
 *             at, until it is parked or frozen.
 * Threads     one lock (REGISTRY); the list of all heaps may be walked without it.
 * Tests       tests/unit/cache/registry_test.c, tests/race/adopt_race.c
 */
#ifndef HAK_CACHE_REGISTRY_H
#define HAK_CACHE_REGISTRY_H

#include "cache/thread_cache.h"

/* A heap for a thread: a parked one if there is one, else a new one; NULL: out of memory. */
struct heap *hak_heap_adopt(void);

/* This very heap, for as long as it takes to look after it; false: it is not parked, or the
 * registry is busy. */
bool hak_heap_adopt_parked(struct heap *heap);

/* Collects what came home to parked heaps and gives their empty slabs back, so that memory freed
 * after a thread's end serves others, and slabs that moved on meanwhile are passed on. Empties the
 * bins of those that were parked at or before `before_ms`. Does nothing while the registry is
 * busy. */
void hak_registry_drain_parked(uint64_t before_ms);

/* Whether the bins of one more heap may stay as they are when it is parked, for the next thread
 * does what the last one did, often. */
bool hak_registry_has_room_for_bins(const struct thread_cache *cache);

/* Starts a private heap's record, which is zeroed but for its state, and adds it to all heaps. */
void hak_registry_add(struct heap *heap);

/* Leaves a heap whose gate is held, and whose remote frees are published, to the next thread. */
void hak_heap_park(struct heap *heap);

/* Gives a heap up for good whose thread left a slow path by a jump: what that path was changing may
 * be half done. Frees into it are accepted, nothing is taken from it. */
void hak_heap_freeze(struct heap *heap);

/* The calling thread left a section by a jump: a parked heap it was changing is frozen. */
void hak_registry_mend(void);

/* Stage 2: a slab of the class with free blocks, moved from a parked heap to `heap`; NULL: none. */
struct slab *hak_registry_take_abandoned(struct heap *heap, uint32_t class_index);

/* Enters the gate of a heap of the calling thread. False: the process is a copy that was made while
 * somebody visited the heap, and stayed behind: it serves nobody any more, and the gate is left. */
HAK_INLINE bool hak_heap_enter(struct heap *heap)
{
    hak_gate_enter(&heap->gate);
    if (HAK_LIKELY(hak_load_relaxed(&heap->state) != HEAP_FROZEN))
        return true;
    hak_gate_leave(&heap->gate);
    return false;
}

/* First of all heaps; the others follow through `next`. */
struct heap *hak_registry_first(void);

/* What a visitor may do: everything that the owner may inside its gate, but for the magazines and
 * the combining table, which it may only read (bins, and what waits beside the table, by
 * hak_word_peek: the owner pops and pushes meanwhile); or only read what is atomic, for the owner
 * did not leave its gate in time. */
enum heap_access { HEAP_OPEN, HEAP_CLOSED };
typedef void heap_visitor(struct heap *heap, enum heap_access access, void *context);

/* Calls `visit` for every heap, the caller's own too, each with its gate held or claimed where that
 * is possible within a few milliseconds. Allocates nothing; does not wait for a registry that a
 * signal handler may have interrupted. */
void hak_registry_visit(heap_visitor *visit, void *context);

/* Before a fork: takes the registry's lock, closes all gates and waits at most `patience_ms`, all
 * in all, until the other threads have left their heaps; `own` is not waited for. */
void hak_registry_stop_heaps(const struct heap *own, uint32_t patience_ms);

/* After it, in the parent: all goes on. */
void hak_registry_restart_heaps(void);

/* In the child, where only `own` (NULL: none) and the chain `lent` have a thread: the other heaps
 * are orphans, parked when somebody looks for a heap or a slab, or frozen if their gate was not
 * open. */
void hak_registry_restart_in_child(struct heap *own, struct heap *lent);

/* The thread that copied the process without telling anybody, in the copy. */
struct copier {
    struct heap *own;
    struct heap *lent;
};

HAK_INLINE bool hak_copier_has(const struct copier *copier, const struct heap *heap)
{
    const struct heap *lent = copier->lent;
    while (lent != NULL && lent != heap)
        lent = lent->outer;
    return heap == copier->own || lent != NULL;
}

/* In such a copy, first: all gates are open, and heaps frozen that somebody was inside who stayed
 * behind; true: there were some. NULL: the caller is another thread, and the gate of the copier's
 * heap, which nobody can tell, may be held with good reason: only those are frozen that a stranger
 * visited. Then hak_registry_mend, then hak_registry_settle: the others' heaps become orphans. */
bool hak_registry_settle_gates(const struct copier *copier);
void hak_registry_settle(const struct copier *copier, bool has_lost_tokens);

#endif
