/* SPDX-License-Identifier: MIT */
/* heap/refill.h - where blocks come from when a bin is empty or bypassed.
 *
 * Owns        the order of sources: the heap's own partial slabs and spare ones, slabs of other
 *             heaps, a started superslab, and a new one, before which spare slabs and the bins of
 *             sparse classes are given up (docs/adr/0060-empty-slabs-stay.md). So free memory of
 *             one heap, and of one class, serves all before more is taken. User heaps take nothing
 *             from other heaps: blocks in others' slabs must not be destroyed with them.
 * Invariants  if there is no memory, nothing changes.
 * Threads     any; the cache is the caller's, and busy, or NULL: the caller has none.
 * Tests       tests/unit/heap/heap_test.c, tests/model/
 */
#ifndef HAK_HEAP_REFILL_H
#define HAK_HEAP_REFILL_H

#include "heap/cache.h"
#include "heap/heap.h"

/* One block of the class, with its bin filled on the way; NULL: out of memory. */
void *hak_refill(struct cache *cache, uint32_t class_index);

/* The class whose block is to serve a request that found its bin empty: the first ones of a short
 * class that has no blocks at hand get blocks of the longest of its four neighbours, so that
 * classes of which a program needs a few blocks share pages
 * (docs/adr/0063-few-blocks-share-pages.md). */
uint32_t hak_refill_class(struct cache *cache, uint32_t class_index);

/* One block, bypassing all bins; NULL: out of memory. With is_zero, of untouched memory if the
 * chosen slab has any: *is_zero tells whether it reads as zero; without, preferably of memory that
 * was used before. */
void *hak_take_one(uint32_t class_index, bool *is_zero);

/* One block that reads as zero and was never handed out, or, where *is_zero says otherwise, the
 * first of a slab in used memory; NULL: the slab that serves the class next has neither. */
void *hak_take_untouched(struct cache *cache, uint32_t class_index, bool *is_zero);

/* One block of this or a larger class, aligned to `alignment`, from the cache (NULL: none) or from
 * slabs that are there already; NULL: there is none. For times when no new slab can or should
 * be made. */
void *hak_take_larger(struct cache *cache, uint32_t class_index, uint32_t class_limit,
                      size_t alignment);

/* The same of any larger class, when all else has failed: a heap that a thread is inside is waited
 * for, so long in total. */
#define HAK_LAST_PATIENCE_MS 10u
void *hak_take_last(struct cache *cache, uint32_t class_index, size_t alignment,
                    uint32_t patience_ms);

/* A large block within the limit; NULL: out of memory. */
void *hak_take_large(struct cache *cache, size_t bytes, size_t alignment,
                     enum large_content content);

/* Memory for a slab of the heap, which the caller is not inside: what others keep without need is
 * given up first. None: out of memory (heap/supply.h). */
struct pool_granules hak_heap_bring(struct cache *cache, struct heap *heap, uint32_t class_index);

/* The same as hak_take_one from a heap that the caller is inside, of what was brought if nothing
 * else is there; NULL: memory must be brought (heap/supply.h). */
void *hak_heap_take_one(struct heap *heap, uint32_t class_index, bool *is_zero,
                        struct pool_granules *brought);

#endif
