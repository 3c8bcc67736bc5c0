/* SPDX-License-Identifier: MIT */
/* cache/lifecycle.h - birth and death of the process, of threads, and of children.
 *
 * Owns        the thread pointer's states: unstarted -> a heap -> exited.
 * Invariants  the pointer is set before pthread_setspecific, which may allocate. A thread that ends
 *             keeps its heap until the last round of destructors, then the heap is flushed and
 *             parked. fork: the gates of all other threads are claimed first, then every lock is
 *             taken, in rank order; nobody who holds a gate waits for the registry. A heap whose
 *             gate does not open in time is frozen in the child: frees into it are accepted,
 *             nothing is taken from it.
 * Threads     as named.
 * Tests       tests/unit/cache/lifecycle_test.c, tests/preload/threads.c, tests/preload/fork.c
 */
#ifndef HAK_CACHE_LIFECYCLE_H
#define HAK_CACHE_LIFECYCLE_H

#include "cache/heap.h"

/* The calling thread's heap, made ready if this is its first call; NULL: out of memory, or the
 * thread is past its end (hak_thread == &hak_thread_exited). */
struct heap *hak_thread_heap(void);

/* Lends a thread past its end, or one interrupted inside its own gate, some heap for one operation;
 * NULL: out of memory. The thread's state is as before after hak_heap_return. */
struct heap *hak_heap_borrow(void);
void hak_heap_return(struct heap *heap);

/* Starts the process's hakmem if that has not happened; false: no address space could be had. */
bool hak_process_start(void);

#endif
