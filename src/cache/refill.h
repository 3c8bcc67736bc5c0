/* SPDX-License-Identifier: MIT */
/* cache/refill.h - where blocks come from when a bin is empty, or is to be passed by.
 *
 * Owns        the order in which places are asked: the heap's own partial slabs and spare one,
 *             slabs of heaps without a thread, a started superslab, slabs of idle heaps, and a new
 *             superslab. Private heaps ask nobody else: what lives in others' slabs must not be
 *             destroyed with them.
 * Invariants  memory that cannot be had leaves everything as it was.
 * Threads     the owner of the heap, inside its gate or under its lock.
 * Tests       tests/unit/cache/heap_test.c, tests/model/
 */
#ifndef HAK_CACHE_REFILL_H
#define HAK_CACHE_REFILL_H

#include "cache/thread_cache.h"

/* One block of the class from the heap's slabs, with its bin filled on the way; NULL: out of
 * memory. */
void *hak_cache_refill(struct thread_cache *cache, uint32_t class_index);

/* One block of this or a larger class, aligned to `alignment`, from what is there already; NULL:
 * nothing of the sort. For times when no new slab can or should be had. */
void *hak_cache_take_larger(struct thread_cache *cache, uint32_t class_index, uint32_t class_limit,
                            size_t alignment);

/* One block of the class that holds untouched memory if the slab in turn has any: *is_zero tells
 * whether it reads as zero. NULL: out of memory. */
void *hak_heap_take_one(struct heap *heap, uint32_t class_index, bool *is_zero);

/* One block of the class that holds memory that was used before if there is any. NULL: out of
 * memory. */
void *hak_heap_take_used(struct heap *heap, uint32_t class_index);

#endif
