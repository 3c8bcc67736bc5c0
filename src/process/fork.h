/* SPDX-License-Identifier: MIT */
/* process/fork.h - what a fork, or another copy of the process, finds in the child.
 *
 * Owns        what is locked around a fork, and how a copy of the process is settled.
 * Invariants  fork, all with signals blocked: a purge in progress is waited for first, while others
 *             go on. Then all locks are taken in rank order, heaps by waiting 20 ms in all, and
 *             other threads' slow paths are awaited as long. What another thread is inside even
 *             then is lost in the child: a heap accepts frees, and nothing is taken from it; what
 *             is in a cache stays there. The forking thread's own slow path,
 *             interrupted by a handler that forks, goes on in the child as in the parent. A handler
 *             that forks inside a section of its own thread gets a child with no lock taken for it:
 *             what it interrupted goes on, the others are noticed as in a copy without handlers.
 *             A copy of which no handler hears (os/copy_mark.h) is settled by its first slow path,
 *             lock or wait, before any of that is taken in it.
 * Argument    To the copy every other thread has stopped between two instructions. What a lock that
 *             is free protects is whole. What one protects that an absent thread holds is as after
 *             a jump out of its section, and mended alike: free spans and the pool's superslabs
 *             are given up and the epoch of their lists grows, so that nothing half linked is met
 *             again; metadata and the window's growth lose a record or a piece at most; what was
 *             out for a purge is lost. A heap that an absent thread is inside is lost, so that
 *             nothing half done in it is read; a locked heap of the program's own, too. All other
 *             heaps are whole. Frees that absent threads had on their way home are found by the
 *             bits (heap/remote_recount.h). The maker of the copy is its first thread: the locks,
 *             heaps and the cache that it was interrupted in by a handler are its own and go on.
 *             Each step may be begun again by a copy of the copy. A handler that copies inside a
 *             section and starts threads there is not supported.
 * Threads     as named.
 * Tests       tests/unit/process/start_test.c, tests/preload/fork.c, tests/preload/raw_fork.c,
 *             docs/model/heap_fork.pml
 */
#ifndef HAK_PROCESS_FORK_H
#define HAK_PROCESS_FORK_H

#include "base/compiler.h"
#include "os/lock.h"

/* The locks that a fork takes, by rank; those of caches and heaps come before them. */
#define HAK_FORK_LOCKS 8u
#define HAK_LOCK_AFTER_SETS 3u /* those of the span sets come before it */
extern struct hak_lock *const hak_fork_locks[HAK_FORK_LOCKS];

/* Registers the handlers of fork. They may allocate at that, so the allocator works already. */
void hak_fork_register(void);

/* In a copy of which no handler heard: settles what absent threads were in. */
void hak_fork_settle(void);

/* In a fork's child `mender` is called when hakmem works again there: a few functions, each set by
 * a module that must be repaired. */
void hak_process_on_fork(void (*mender)(void));

#endif
