/* SPDX-License-Identifier: MIT */
/* heap/cpu_cache.h - changes of the bins of the processor that the thread runs on.
 *
 * Owns        nothing.
 * Invariants  each is one restartable sequence with one commit: it takes effect completely or not
 *             at all, and is restarted if the thread was interrupted
 *             (docs/adr/0025-caches-by-processor.md). There is one file per architecture;
 *             cpu_cache_none.c for all others.
 * Threads     those that hak_here leads to a processor's bins; `scaled` as tags have it.
 * Tests       tests/unit/heap/bins_test.c, tests/preload/rseq.c
 */
#ifndef HAK_HEAP_CPU_CACHE_H
#define HAK_HEAP_CPU_CACHE_H

#include "heap/bins.h"

/* Which bin the hot path takes for each size, or for each hak_hot_size_step of them, from 0 to
 * HAK_CLASS_HOT_BYTES_MAX. 0: none, so that requests of the size take the slow path
 * (heap/route.h); written by one byte. For larger sizes, and aligned ones above
 * HAK_CLASS_EVEN_BYTES_MAX, it has hak_bin_of_line (slab/size_class.h). */
extern uint8_t hak_hot_sizes[];
extern const uint32_t hak_hot_size_step;

/* Whether this build has them. */
extern const bool hak_has_cpu_caches;

struct popped hak_cpu_cache_pop(size_t scaled);
bool hak_cpu_cache_push(size_t scaled, void *block);
uint32_t hak_cpu_cache_pop_some(size_t scaled, void **blocks, uint32_t most);
uint32_t hak_cpu_cache_push_some(size_t scaled, void *const *blocks, uint32_t count);

/* Lowers the countdown to `countdown` if it is above. Returns what it was, plus 1; 0: the bin is
 * closed, or the thread runs on others than `bins`. */
uint32_t hak_cpu_cache_lower(size_t scaled, struct bins *bins, uint32_t countdown);

/* Closes the bin if `bins` is what the thread runs on; returns its top, or 0. */
uint32_t hak_cpu_cache_close(size_t scaled, struct bins *bins);

#endif
