/* SPDX-License-Identifier: MIT */
/* heap/slow_clock.h - the time that slow paths take, measured on demand.
 *
 * Owns        whether it is measured, and the sums: of one slow path in eight, selected by its
 *             cache's counter so that alternating refills and flushes are sampled equally.
 * Invariants  while it is off a slow path reads one word for it. A path that takes longer than a
 *             millisecond was interrupted, and counts as a millisecond.
 * Threads     any; relaxed: nothing is ordered by a sum.
 * Tests       tests/unit/heap/slow_clock_test.c
 */
#ifndef HAK_HEAP_SLOW_CLOCK_H
#define HAK_HEAP_SLOW_CLOCK_H

#include "heap/cache.h"

struct slow_sums {
    _Atomic uint64_t ns;             /* in slow paths, without giving memory back */
    _Atomic uint64_t refilled_bytes; /* served by refills, past the bins */
    _Atomic uint64_t large_bytes;    /* served as large blocks */
};
extern struct slow_sums hak_slow_sums;
extern _Atomic uint32_t hak_slow_clock; /* 1: it is wanted */

HAK_INLINE bool hak_slow_is_clocked(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_slow_clock) != 0);
}

/* The moment at which a slow path began; 0: it was not drawn. */
uint64_t hak_slow_begin(const struct cache *cache);

/* It is over. */
void hak_slow_end(uint64_t begun_ns);

/* The cache's slow path serves a block past the bins. */
void hak_slow_note_refill(const struct cache *cache, size_t block_bytes);

/* A large block was served. */
void hak_slow_note_large(size_t bytes);

#endif
