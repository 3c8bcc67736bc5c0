/* SPDX-License-Identifier: MIT */
/* heap/growth.h - how many slots the bins of a cache have.
 *
 * Owns        when a bin gets its first slots, when it grows, and what all bins may hold. A bin
 *             grows with its misses, a flush that finds it full or a refill that finds it empty.
 * Invariants  a cache's bins hold no more than row thread_cache_bytes, nor than its share of what
 *             all caches' bins may hold: the least of row process_cache_bytes and an eighth of the
 *             limit. For a bin that grows to more than few slots it is half of the first, and of
 *             the second no more than row cache_percent of the memory held (4 MiB if that is less).
 *             Large blocks leave a quarter to small ones. 64 KiB and the first slots of each class
 *             are always allowed.
 * Threads     those that use the cache. Slots change under the lock CACHES, by trylock only: if it
 *             is held, the bin stays unchanged.
 * Tests       tests/unit/heap/growth_test.c
 */
#ifndef HAK_HEAP_GROWTH_H
#define HAK_HEAP_GROWTH_H

#include "heap/cache.h"

/* From this size on blocks count as large: their bins start later and smaller, and are bounded by
 * a row of their own. */
#define HAK_LARGE_BIN_BLOCK_BYTES 4096u

/* The bin has no slots, or few, and may grow. */
void hak_growth_begin(struct room *room);

/* Notes a miss of the class's bin and lets it grow if due; true: it grew. */
bool hak_growth_note_miss(struct cache *cache, uint32_t class_index);

/* Lets a bin hold `capacity` blocks, no more than now and no less than it has. */
void hak_growth_shrink(struct cache *cache, uint32_t class_index, uint32_t capacity);

/* A bin that was emptied may hold nothing until it misses again. */
void hak_growth_undo(struct cache *cache, uint32_t class_index);

#endif
