/* SPDX-License-Identifier: MIT */
/* heap/cache_list.h - all caches: of processors, of threads, and free ones.
 *
 * Owns        the list of all caches (only ever growing); which are in use, and which are free.
 * Invariants  the cache of a processor is created when a thread first calls there, and is never
 *             removed. Threads without restartable sequences (os/rseq.h) have a slot each: its
 *             cache is in use by one thread, or free. A free one keeps the blocks in its bins,
 *             since the next thread often requests the same sizes. In a child of fork, caches of
 *             threads that the child does not have are orphans. They become free when a thread
 *             looks for a cache, so a child that soon calls exec pays nothing. A cache that was
 *             being changed is lost, with the blocks in its bins.
 * Argument    While its thread is in a slow path, the state of a cache is CACHE_BUSY, except while
 *             the thread waits for a heap: the bins are then as the hot path leaves them. What the
 *             hot path changes is consistent at every instruction (heap/bins.h). So a cache copied
 *             while it is not busy can be used by another thread.
 * Threads     one lock (CACHES); the list of all caches may be walked without it.
 * Tests       tests/unit/heap/cache_list_test.c, tests/unit/process/start_test.c
 */
#ifndef HAK_HEAP_CACHE_LIST_H
#define HAK_HEAP_CACHE_LIST_H

#include "heap/cache.h"

/* Sets which ids are possible; before any other call. */
void hak_caches_start(void);

/* Why caches belong to processors, or to threads. */
enum rseq_reason hak_caches_reason(void);

/* A slot's cache for the calling thread; NULL: out of memory, or of slots. */
struct cache *hak_cache_take(void);

/* There are no more slots. */
bool hak_caches_are_full(void);

/* The cache of the processor that the calling thread is on, made if there is none; NULL: out of
 * memory. */
struct cache *hak_cache_of_processor(void);

/* The thread ends: its cache is free, empty or as it is if there is room for that. Outside every
 * heap. */
void hak_cache_return(struct cache *cache);

/* Abandons a cache that was left while it was being changed. */
void hak_cache_lose(struct cache *cache);

/* Empties the bins of caches that have been free since `before_ms`; unless `drain` is NULL, it
 * empties what they withhold from reuse. Does nothing while another thread does. */
void hak_caches_drain(uint64_t before_ms, void (*drain)(struct cache *cache));

/* First of all caches; the others follow through `next`. */
struct cache *hak_caches_first(void);

/* Empties processors' caches that were idle since `before_ms`; it may take some 10 us. Not from
 * requests. */
void hak_caches_drain_idle(uint64_t before_ms);

/* With the lock: waits, at most so long, until no other thread is changing its slot's cache or
 * holds blocks of a processor's. */
void hak_caches_await(const struct cache *own, uint32_t patience_ms);

/* In the child, where only `own` (NULL: none) has a thread. */
void hak_caches_restart_in_child(struct cache *own);

/* The same in a copy without handlers of fork, by the thread that made it; call after
 * hak_caches_mend. */
void hak_caches_settle(struct cache *own);

/* The calling thread left a section by a jump. */
void hak_caches_mend(void);

#endif
