/* SPDX-License-Identifier: MIT */
/* process/start.h - the start of the process, and the start and end of threads.
 *
 * Owns        when hak_here changes: hak_here_unasked -> libc's area or that of a slot's cache ->
 *             hak_here_never. A thread with libc's area keeps it to its end; one that gets no slot,
 *             or starts apart, has hak_here_never at once.
 * Invariants  hak_here is set before pthread_setspecific, which may allocate. A thread that ends
 *             keeps its cache until the last round of destructors, then it is returned, and later
 *             requests of the thread use none.
 * Threads     as named.
 * Tests       tests/unit/process/start_test.c, tests/preload/threads.c
 */
#ifndef HAK_PROCESS_START_H
#define HAK_PROCESS_START_H

#include "heap/cache.h"
#include "misuse/harden.h"

/* The calling thread's cache, made ready if this is its first call; NULL: out of memory, or the
 * thread uses none: after its exit (hak_here == &hak_here_never), or in a handler that interrupted
 * its first call. */
struct cache *hak_thread_cache(void);

/* The thread's cache was left by a jump while it was being changed. Returns what hak_thread_cache
 * returns. */
struct cache *hak_thread_replace_cache(struct cache *cache);

/* In hakmem's own thread: it has no cache, and gets none. */
void hak_thread_be_apart(void);

/* Starts the process's hakmem if that has not happened; false: there is no address space. */
bool hak_process_start(void);

/* The same; true when hardened mode is on. */
bool hak_process_is_hardened(void);
HAK_INLINE bool hak_is_hardened(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_harden) != 0) && hak_process_is_hardened();
}

#endif
