/* SPDX-License-Identifier: MIT */
/* cache/cache_list.h - all thread caches there are, and those that wait for a thread.
 *
 * Owns        the list of all caches (only ever growing); which are in use, and which are free.
 * Invariants  a cache is in use by one thread, or free, with what is in its bins: the next thread
 *             does what the last one did, often. In a child of fork those in use by threads that it
 *             has not are orphans: they become free when somebody looks for a cache, so that a
 *             child that soon becomes another program never pays; one that was being changed is
 *             lost, with what is in its bins.
 * Argument    A cache says while its thread is in a slow path (state): CACHE_BUSY but while it
 *             waits for a heap, when its bins are as the hot path leaves them. What the hot path
 *             changes is whole at every instruction (cache/magazine.h). So what is copied while it
 *             is not busy can be used by another thread.
 * Threads     one lock (CACHES); the list of all caches may be walked without it.
 * Tests       tests/unit/cache/lifecycle_test.c
 */
#ifndef HAK_CACHE_CACHE_LIST_H
#define HAK_CACHE_CACHE_LIST_H

#include "cache/thread_cache.h"

/* A cache for the calling thread; NULL: out of memory. */
struct thread_cache *hak_cache_take(void);

/* The thread ends: its cache is free, empty or as it is if there is room for that. Outside every
 * heap. */
void hak_cache_return(struct thread_cache *cache);

/* Gives a cache up for good that was left while it was being changed. */
void hak_cache_lose(struct thread_cache *cache);

/* Empties caches that have been free since `before_ms`. Does nothing while somebody else is at
 * it. */
void hak_caches_drain(uint64_t before_ms);

/* First of all caches; the others follow through `next`. */
struct thread_cache *hak_caches_first(void);

/* Around fork. */
void hak_caches_lock(void);
void hak_caches_unlock(void);

/* With the lock: until no other thread is changing its cache, and so long at most. */
void hak_caches_await(const struct thread_cache *own, uint32_t patience_ms);

/* In the child, where only `own` (NULL: none) has a thread. */
void hak_caches_restart_in_child(struct thread_cache *own);

/* The same in a copy without handlers of fork, by the thread that made it, after the next. */
void hak_caches_settle(struct thread_cache *own);

/* The calling thread left a section by a jump. */
void hak_caches_mend(void);

#endif
