/* SPDX-License-Identifier: MIT */
/* process/background.h - the background thread, which returns memory while the program sleeps.
 *
 * Owns        that thread; whether it runs, and what keeps it from it.
 * Invariants  at most one runs in a process. It is started when there may be something to do, and
 *             ends when it has found nothing for about a second; with an interval, a signal or
 *             shared memory for statistics, or where the pressure on memory is watched, it sleeps
 *             instead. It is none of libc's threads (os/thread.h), so any call may start it, a free
 *             too. A forked child has none until it has grown. A copy that was made without fork
 *             has none at all: what clone made ends with a system call that ends one thread, and
 *             this one would keep it, and its exit status. A child of vfork starts none, since its
 *             exec would end a thread of its parent's memory.
 * Argument    The last call of a program for hours may come while the thread ends or falls asleep.
 *             The caller writes `activity`, passes a fence (or does both in the order seq_cst),
 *             then reads the state and whether the thread sleeps; the thread stores "none" or
 *             "asleep", passes a fence, then reads `activity`: one of the two sees the other, and
 *             the thread is restarted, woken or kept running.
 *             While the old thread is exiting, a new one uses the second record. A pause: the
 *             starter stores "runs", then reads the count of pauses; the pausing thread counts,
 *             then awaits "none" and the end of both. Its end is alike: the last to resume lowers
 *             the count, then reads the state and starts what is due; a thread that ends, or was
 *             not started, for the pause stores "none", then reads the count again.
 * Threads     any, also inside slow paths and locks and in signal handlers.
 * Tests       tests/interleave/background_interleave.c, tests/preload/idle.c,
 *             tests/preload/ending.c, tests/model/fault_test.c
 */
#ifndef HAK_PROCESS_BACKGROUND_H
#define HAK_PROCESS_BACKGROUND_H

#include "base/compiler.h"

struct os_thread;

/* Starts it when it is due, or wakes it; from the tick. */
void hak_background_wake(void);

/* The same without a fence, after a large block was taken from the span heap or among others of a
 * span cache, resized, or freed and counted by hak_stat_add_for. */
void hak_background_consider(void);

/* The same after a thread looked after its cache: what lies free in slabs is counted. */
void hak_background_consider_slabs(void);

/* Statistics must be printed or published while the program sleeps: it runs from now on, as long as
 * the stats writer waits for anything. */
void hak_background_want(void);

/* Wakes it if it sleeps for long; from a signal handler, too. */
void hak_background_stir(void);

/* Ends it, and lets none start until it is resumed. Returns when it is gone; in a signal handler
 * that interrupted a slow path, which it may wait for, after 20 ms at the latest. */
void hak_background_pause(void);
void hak_background_resume(void);

/* Returns all free memory if tasks waited for memory lately; for itself and for tests. */
bool hak_background_watch(void);

/* Its thread record, for tests: 0 or 1. */
const struct os_thread *hak_background_thread(uint32_t place);

#endif
