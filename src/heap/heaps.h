/* SPDX-License-Identifier: MIT */
/* heap/heaps.h - the heaps that all threads share, and how a slow path enters one.
 *
 * Owns        the table of heaps, and which one a thread enters.
 * Invariants  as many heaps as can be used at once, created as threads arrive: a process of one
 *             thread has one. A thread that holds none enters the heap of its processor, else any
 *             other, else one more is created, up to a bound, else it waits. A thread that holds
 *             one enters others only by trylock, so no thread waits for a thread that waits. What a
 *             thread holds, or is about to take, is noted (heap/held_heaps.h). A handler that
 *             interrupted a slow path with a heap does not try the noted ones, and waits for none:
 *             it tries all others, creates one more, or is refused. Locks of higher rank are taken
 *             with a heap held; that of the registry by trylock only.
 * Argument    A slow path that was left by a jump leaves its heap locked. Its thread's next slow
 *             path, or its end, finds it noted with a stack that is gone: the heap is lost, since a
 *             change of it may be half done. Others do not wait for that: a thread that has waited
 *             20 ms for a heap creates one more, regardless of the bound. A holder that was only
 *             stopped continues when it runs again. Slabs move between heaps with both locks held.
 *             A free that found the old heap checks again under its lock (heap/flush.h).
 * Threads     any, signal handlers too.
 * Tests       tests/unit/heap/heaps_test.c, tests/race/heaps_race.c, docs/model/heap_locks.pml,
 *             docs/model/lost_lock.pml, docs/model/heap_fork.pml
 */
#ifndef HAK_HEAP_HEAPS_H
#define HAK_HEAP_HEAPS_H

#include "heap/heap.h"
#include "heap/held_heaps.h"
#include "os/lock.h"

/* The maximum number of heaps, for any number of processors. */
#define HAK_HEAPS_MOST 512u
/* Enters the heap if no thread is inside. */
HAK_INLINE bool hak_heap_try_enter(struct heap *heap)
{
    uintptr_t before = hak_held_heaps.note;
    uint32_t expected = 0;
    if (HAK_UNLIKELY(hak_lock_has_all())) /* our own fork has claimed it */
        return heap->is_claimed && hak_load_relaxed(&heap->state) == HEAP_OPEN;
    if (HAK_UNLIKELY((before & HAK_HELD_HEAPS_COUNT) == HAK_HELD_HEAPS_MOST ||
                     hak_heap_is_noted(heap->owner.heap_id)))
        return false;
    hak_heap_note(heap->owner.heap_id);
    /* acquire: partner is the release in hak_heap_leave */
    bool is_entered = hak_cas_acquire(&heap->lock.state, &expected, hak_lock_self());
    if (HAK_LIKELY(is_entered && hak_load_relaxed(&heap->state) == HEAP_OPEN)) {
        heap->before = before;
        hak_counter_add(&heap->enter_count, 1); /* on the line of the lock, which is ours */
        return true;
    }
    if (is_entered)
        hak_lock_give_among(&heap->lock);
    hak_heap_forget(before);
    return false;
}

/* Those that were entered last are left first. */
HAK_INLINE void hak_heap_leave(struct heap *heap)
{
    uintptr_t before = heap->before;
    if (HAK_UNLIKELY(hak_lock_has_all()))
        return;
    hak_lock_give_among(&heap->lock);
    hak_heap_forget(before);
}

/* The heap of the processor that the thread runs on, the first one if it has none yet, without a
 * lock; NULL: there is none at all. */
struct heap *hak_heap_near(void);

/* The same; NULL: the processor has none, or one that is closed. */
struct heap *hak_heap_own(void);

/* Enters that heap, created if the processor has none yet; NULL: a thread is inside, or no
 * memory. */
struct heap *hak_heap_try_near(void);

/* Enters a heap for one slow path; NULL: out of memory, or a handler that interrupted a thread with
 * a heap found all busy. */
struct heap *hak_heap_enter(void);

/* Enters this one, waiting so long at most. The caller holds none, or does not wait. */
bool hak_heap_enter_within(struct heap *heap, uint32_t patience_ms);

/* All heaps there are, by index. */
uint32_t hak_heap_count(void);
struct heap *hak_heap_at(uint32_t index);

/* Some of the empty slabs that heaps keep become granules for all; false: no heap that can be
 * entered now has any. */
bool hak_heaps_give_up_spares(void);

/* How many processors' heaps are needed; grows with the number of threads. */
void hak_heaps_note_threads(uint32_t threads);

/* What a visitor may do: anything, inside the heap; or only read what is atomic, for the heap could
 * not be entered in time. */
enum heap_access { HEAP_ENTERED, HEAP_CLOSED };
typedef void heap_visitor(struct heap *heap, enum heap_access access, void *context);

/* Calls `visit` for each heap, each entered if that is possible within a few milliseconds.
 * Allocates nothing. */
void hak_heaps_visit(heap_visitor *visit, void *context);

/* The calling thread left slow paths by a jump, or was cancelled in them (is_over: its end): the
 * heaps that it held are lost. True: there were some. */
bool hak_heaps_mend(bool is_over);

/* The same of the table: a heap that was being made is lost. */
void hak_heaps_mend_table(void);

/* Around fork, by the holder of the registry's lock: all heaps are entered except those that others
 * do not leave within `patience_ms` in total; these are lost in the child. What the forking thread
 * was interrupted in continues. */
void hak_heaps_stop(uint32_t patience_ms);
void hak_heaps_go_on(void);
bool hak_heaps_restart_in_child(void); /* true: some were lost */

/* In a copy without handlers of fork: heaps that others were inside are lost; true: some were. */
bool hak_heaps_settle(bool is_copier);

#endif
