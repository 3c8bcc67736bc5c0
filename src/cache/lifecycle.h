/* SPDX-License-Identifier: MIT */
/* cache/lifecycle.h - birth and death of the process, of threads, and of children.
 *
 * Owns        the thread pointer's states: unstarted -> a heap -> exited.
 * Invariants  the pointer is set before pthread_setspecific, which may allocate. A thread that ends
 *             keeps its heap until the last round of destructors, then the heap is flushed and
 *             parked. fork, all with signals blocked: all gates are closed and the other threads
 *             awaited, then every lock is taken, in rank order; nobody who holds a gate waits for
 *             the registry but a handler inside its own thread's slow path. A heap whose owner does
 *             not leave it in time is frozen in the child: frees into it are accepted, nothing is
 *             taken from it. The forking thread's own slow path, interrupted by a handler that
 *             forks, goes on in the child as in the parent: its heap stays its own.
 *             A slow path that was left by a jump (or cancelled) is noticed by the thread's next
 *             one, and its heap frozen. It costs at most what the heap held; no other thread waits;
 *             from then on slow paths block signals, so that it does not come again and again. A
 *             handler that forks inside a section of its own thread gets a child with no lock taken
 *             for it: what it interrupted goes on, heaps of absent threads are left alone.
 *             A copy of which no handler hears (os/copy_mark.h) is settled by its first slow path,
 *             lock or wait, before any of that is taken in it.
 * Argument    To the copy every other thread has stopped between two instructions. What a lock that
 *             is free protects is whole. What one protects that an absent thread holds is as after
 *             a jump out of its section, and mended alike: free spans and the depot's superslabs
 *             are given up and the epoch of their lists grows, so that nothing half linked is met
 *             again; metadata and the window's growth lose a record or a piece at most; what was
 *             out for a purge is lost. A heap whose gate an absent thread holds, or that a visitor
 *             had entered (GATE_VISITED), is frozen, so that nothing half done in it is read. A
 *             locked private heap is frozen, parked ones that were being changed, too. All others
 *             are whole: their owners were in malloc's or free's short way at most, which owns the
 *             bins alone. The maker of the copy is its first thread: the locks, gates and heaps it
 *             was interrupted in by a handler are its own and go on. Where another thread of the
 *             copy notices first, it cannot tell the maker's heap, and leaves all heaps to whom
 *             they belong but visited ones. The maker's heap, if frozen, is left at its next
 *             entrance (hak_heap_enter). Each step may be begun again by a copy of the copy.
 *             A handler that copies inside a section and starts threads there is not supported.
 * Threads     as named.
 * Tests       tests/unit/cache/lifecycle_test.c, tests/preload/threads.c, tests/preload/fork.c,
 *             tests/preload/raw_fork.c
 */
#ifndef HAK_CACHE_LIFECYCLE_H
#define HAK_CACHE_LIFECYCLE_H

#include "cache/thread_cache.h"

/* The calling thread's heap, made ready if this is its first call; NULL: out of memory, or the
 * thread is past its end (hak_thread == &hak_thread_exited). */
struct heap *hak_thread_heap(void);

/* The thread's gate is abandoned: a slow path of its heap was left by a jump. What comes home to
 * that heap is accepted, but it serves nobody any more. Returns what hak_thread_heap returns. */
struct heap *hak_thread_replace_heap(struct heap *heap);

/* The thread's heap was frozen while the process was copied: it has none now. */
void hak_thread_forget_heap(void);

/* In hakmem's own thread: it has no heap, and gets none. */
void hak_thread_be_apart(void);

/* Gives back the locks of a section that this thread left by a jump, and mends what they protect,
 * at the price of what was free there. */
void hak_thread_mend(void);

/* Lends a thread past its end, or one interrupted inside its own gate, some heap for one operation;
 * NULL: out of memory. The thread's state is as before after hak_heap_return. */
struct heap *hak_heap_borrow(void);
void hak_heap_return(struct heap *heap);

/* Starts the process's hakmem if that has not happened; false: no address space could be had. */
bool hak_process_start(void);

/* The same; true when hardened mode is on. */
bool hak_process_is_hardened(void);

/* In a fork's child `mender` is called when hakmem works again there. One function, set by whoever
 * has something to mend. */
void hak_process_on_fork(void (*mender)(void));

#endif
