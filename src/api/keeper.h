/* SPDX-License-Identifier: MIT */
/* api/keeper.h - the thread of hakmem's own that gives memory back while the program sleeps.
 *
 * Owns        that thread; whether it runs, sleeps, or could not be had.
 * Invariants  at most one in a process, and none in a forked child until that one has grown. A
 *             program that has threads gets it by its size, one that has none only when there is
 *             something to do for it. A copy made without fork(3) never gets it.
 * Threads     any, outside every gate and lock. Starting it calls libc: in requests always, in free
 *             only while the process has one thread. libc frees what a thread left under a lock of
 *             its own, which starting one takes; with one thread it is nobody's.
 * Tests       tests/preload/idle.c, tests/preload/fork.c, tests/model/fault_test.c
 */
#ifndef HAK_API_KEEPER_H
#define HAK_API_KEEPER_H

#include "base/compiler.h"

/* Wakes it, or notes that it is wanted. */
void hak_keeper_wake(void);

/* Starts it when it is time; for requests. */
void hak_keeper_consider(void);

/* The same for a program of one thread: after a large block became free, and after the heap was
 * looked after. */
struct heap;
void hak_keeper_weigh(void);
void hak_keeper_weigh_heap(const struct heap *heap);

/* Gives everything free back if tasks waited for memory lately; its own thread's, and tests'. */
bool hak_keeper_watch(void);

/* Wakes it if it sleeps for long; from a signal handler, too. */
void hak_keeper_stir(void);

#endif
