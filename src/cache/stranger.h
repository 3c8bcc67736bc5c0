/* SPDX-License-Identifier: MIT */
/* cache/stranger.h - one thread's visit to the heap of another that runs.
 *
 * Owns        the STRANGER lock: visits and forks exclude each other, so that no thread is in two
 *             claims at once and fork finds no claim but its own.
 * Invariants  while a visit lasts the heap is active, its owner outside the gate, and the heap
 *             cannot change hands: its owner must pass the gate before it parks the heap.
 * Argument    The owner may stand between leaving its gate and parking the heap, which it does
 *             under the registry's lock. Then the visitor could meet a third thread, T, that holds
 *             this lock and takes slabs out of the parked heap. Both look first: the visitor claims
 *             (a store), then passes the barrier, then reads the state; T has seen the heap parked,
 *             passes a fence, then reads the claim and keeps off. If T read "no claim" before the
 *             barrier reached its processor, all it knew by then, that the heap is parked, is
 *             visible to the visitor behind the barrier, who gives up. If T reads later it sees the
 *             claim. Unless the heap has been adopted since: a visitor that reads "active" then
 *             reads what the adopter wrote, who had the registry's lock after T, and sees all that
 *             T changed. The adopter need not have passed the gate yet.
 * Threads     any thread that holds no gate and no lock; hak_stranger_try_enter: no lock, and no
 *             gate but its own.
 * Tests       tests/unit/cache/stranger_test.c, tests/race/stranger_race.c
 */
#ifndef HAK_CACHE_STRANGER_H
#define HAK_CACHE_STRANGER_H

#include "cache/heap.h"

/* Enters the heap; false: it is busy, or nobody's. Waits a few milliseconds at most. */
bool hak_stranger_enter(struct heap *heap);
/* The same without waiting for anybody; the caller may be inside its own gate. */
bool hak_stranger_try_enter(struct heap *heap);
void hak_stranger_leave(struct heap *heap);

/* Whether a parked heap, seen under the registry's lock, is free of visitors that came before it
 * was parked. */
bool hak_stranger_is_away(const struct heap *heap);

/* The calling thread left a visit by a jump: its claim is released. */
void hak_stranger_mend(void);

/* Around fork, and around visits of all heaps at once. */
bool hak_stranger_try_lock(void);
void hak_stranger_lock(void);
void hak_stranger_unlock(void);
void hak_stranger_lock_reset(void);

#endif
