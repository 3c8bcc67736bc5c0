/* SPDX-License-Identifier: MIT */
/* process/reclaim.h - returns free memory to the kernel: periodically, or all of it at once.
 *
 * Owns        when the process last checked, which heap is next, and how often memory was short.
 * Invariants  memory that is free for longer than decay_ms is returned to the kernel, as
 *             free_policy allows; above the soft limit all free memory is. A tick does a bounded
 *             amount of work.
 * Threads     any; one at a time purges, the others go on.
 * Tests       tests/unit/process/reclaim_test.c, tests/unit/api/free_policy_test.c,
 *             tests/preload/idle.c
 */
#ifndef HAK_PROCESS_RECLAIM_H
#define HAK_PROCESS_RECLAIM_H

#include "base/compiler.h"

/* Maintains the calling thread's cache and its nearest heap: quiet bins, sparse slabs. */
struct cache;
void hak_reclaim_cache(struct cache *cache);
/* Returns memory that has been free for long; false, and nothing done: it is not due yet. */
bool hak_reclaim_tick(void);
/* Collects published frees, and makes spare slabs and cached spans of heaps available to all. */
void hak_reclaim_empty_heaps(void);
/* What the tick does, and for all heaps. Returns the bytes returned to the kernel; *is_done tells
 * whether no sweep is left unfinished. */
size_t hak_reclaim_visit(bool *is_done);
/* Returns all free memory to the kernel, now; returns the bytes. */
size_t hak_reclaim_purge_all(void);
/* The same except for `keep_bytes` of free spans, after the calling thread's cache is flushed,
 * published blocks and idle caches are collected, and all slabs are swept. */
size_t hak_reclaim_trim(size_t keep_bytes);

/* Memory is short: all of that at once, and each thread empties its bins when it next maintains its
 * cache. Returns the bytes. Outside every heap and lock. */
size_t hak_reclaim_relieve(void);

#endif
