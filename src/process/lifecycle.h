/* SPDX-License-Identifier: MIT */
/* process/lifecycle.h - birth and death of the process, of threads, and of children.
 *
 * Owns        the thread pointer's states: unstarted -> a cache -> exited.
 * Invariants  the pointer is set before pthread_setspecific, which may allocate. A thread that ends
 *             keeps its cache until the last round of destructors, then it is returned, and later
 *             requests of the thread do without one. fork, all with signals blocked: all locks are
 *             taken in rank order, heaps by waiting 20 ms in all, and other threads' slow paths are
 *             awaited as long. What another thread is inside even then is lost in the child: a heap
 *             accepts frees, and nothing is taken from it; what is in a cache stays there. The
 *             forking thread's own slow path, interrupted by a handler that forks, goes on in the
 *             child as in the parent. A handler that forks inside a section of its own thread gets
 *             a child with no lock taken for it: what it interrupted goes on, the others are
 *             noticed as in a copy without handlers.
 *             A slow path that was left by a jump (or cancelled) is noticed by the thread's next
 *             one: its cache and the heap that it was in are lost; no other thread waits. From then
 *             on slow paths block signals, so that it does not come again and again.
 *             A copy of which no handler hears (os/copy_mark.h) is settled by its first slow path,
 *             lock or wait, before any of that is taken in it.
 * Argument    To the copy every other thread has stopped between two instructions. What a lock that
 *             is free protects is whole. What one protects that an absent thread holds is as after
 *             a jump out of its section, and mended alike: free spans and the depot's superslabs
 *             are given up and the epoch of their lists grows, so that nothing half linked is met
 *             again; metadata and the window's growth lose a record or a piece at most; what was
 *             out for a purge is lost. A heap that an absent thread is inside is lost, so that
 *             nothing half done in it is read; a locked heap of the program's own, too. All other
 *             heaps are whole. Frees that absent threads had on their way home are found by the
 *             bits (heap/tokens.h). The maker of the copy is its first thread: the locks, heaps
 *             and the cache that it was interrupted in by a handler are its own and go on. Each
 *             step may be begun again by a copy of the copy. A handler that copies inside a section
 *             and starts threads there is not supported.
 * Threads     as named.
 * Tests       tests/unit/process/lifecycle_test.c, tests/preload/threads.c, tests/preload/fork.c,
 *             tests/preload/raw_fork.c, docs/model/heap_fork.pml
 */
#ifndef HAK_PROCESS_LIFECYCLE_H
#define HAK_PROCESS_LIFECYCLE_H

#include "heap/cache.h"
#include "misuse/harden.h"

/* The calling thread's cache, made ready if this is its first call; NULL: out of memory, or the
 * thread does without one: past its end (hak_here == &hak_here_never), or in a handler that
 * interrupted its first call. */
struct cache *hak_thread_cache(void);

/* The thread's cache was left by a jump while it was being changed. Returns what hak_thread_cache
 * returns. */
struct cache *hak_thread_replace_cache(struct cache *cache);

/* In hakmem's own thread: it has no cache, and gets none. */
void hak_thread_be_apart(void);

/* Heaps that this thread is in by a slow path that it left by a jump are lost; all of them at its
 * end. */
void hak_thread_mend_heaps(bool is_over);

/* True once a slow path was left by a jump or by cancellation: from then on slow paths block
 * signals, so that this costs the program memory a few times, not again and again. */
extern _Atomic bool hak_jumps_matter;

/* Gives back the locks of a section that this thread left by a jump, and mends what they protect,
 * at the price of what was free there. */
void hak_thread_mend(void);

/* Starts the process's hakmem if that has not happened; false: no address space could be had. */
bool hak_process_start(void);

/* The same; true when hardened mode is on. */
bool hak_process_is_hardened(void);
HAK_INLINE bool hak_is_hardened(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_harden) != 0) && hak_process_is_hardened();
}

/* In a fork's child `mender` is called when hakmem works again there. One function, set by whoever
 * has something to mend. */
void hak_process_on_fork(void (*mender)(void));

#endif
