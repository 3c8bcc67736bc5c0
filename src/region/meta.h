/* SPDX-License-Identifier: MIT */
/* region/meta.h - memory for hakmem's metadata.
 *
 * Owns        the metadata area of the reservation: its bump pointer, and one pool per use and
 *             size.
 * Invariants  records are zero when first taken, aligned to cache lines, never on a page with
 *             blocks. A record of one pool stays in that pool for ever, so that a stale pointer
 *             into a pool still points at a record of its kind.
 * Threads     one lock (META). Another one (META_GROWTH) is held while the area grows, mostly ahead
 *             of need and without the first.
 * Tests       tests/unit/region/meta_test.c, tests/race/meta_race.c
 */
#ifndef HAK_REGION_META_H
#define HAK_REGION_META_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/lock.h"

/* Records of one kind and size that were given back. */
struct meta_pool {
    void *first;
    _Atomic uint64_t taken_count; /* records in use; read without the lock */
};

/* A zeroed record of `bytes`; NULL: out of memory. */
void *hak_meta_take(size_t bytes);

/* A record from `pool`, else a zeroed one. All records of a pool have the same `bytes`. */
void *hak_meta_pool_take(struct meta_pool *pool, size_t bytes);

/* The same for a caller who keeps others waiting, in a heap or by a lock: it is served from the
 * reserve, too. */
void *hak_meta_pool_take_reserved(struct meta_pool *pool, size_t bytes);

/* From now on all other calls leave a reserve of half a step: mapped, and unused. */
void hak_meta_keep_reserve(void);

/* Returns a record. Its first word is overwritten by the pool's link; the rest is kept. */
void hak_meta_pool_give(struct meta_pool *pool, void *record);

/* Prepares the next so many bytes of records, as far as possible: they then cost no system call and
 * no page fault. */
void hak_meta_prewarm(size_t bytes);

/* Fills the reserve up. */
void hak_meta_grow_ahead(void);

/* Maps memory for a record of so many bytes that will be taken under a lock. */
void hak_meta_make_room(size_t bytes);

/* Bytes of metadata committed so far. */
size_t hak_meta_bytes(void);

/* Of these, in the area that stands with the window's tables. */
size_t hak_meta_present_bytes(void);

/* For forks and repairs: each step under the first loses a record at most; under the second the
 * area asks the kernel what is mapped. */
extern struct hak_lock hak_meta_lock, hak_meta_growth_lock;

#endif
