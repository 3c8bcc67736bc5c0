/* SPDX-License-Identifier: MIT */
/* heap/flush.h - returns blocks to their heaps, from bins or one by one.
 *
 * Owns        nothing that lasts.
 * Invariants  each heap that has some of the blocks is entered once. Blocks of a busy heap are
 *             published (slab/remote.h), and the next thread that enters the heap collects them: a
 *             flush never waits.
 * Argument    A slab may move to another heap between reading its owner and taking the lock. Under
 *             the lock the owner is read again: while a heap is held none of its slabs leave it. A
 *             block that is being freed counts as used, so its slab is not retired meanwhile; if it
 *             is retired, another thread has freed the block as well, which the slab's generation
 *             or its bitmap shows.
 * Threads     any, signal handlers too; no heap is held.
 * Tests       tests/unit/heap/heap_test.c, tests/race/heaps_race.c
 */
#ifndef HAK_HEAP_FLUSH_H
#define HAK_HEAP_FLUSH_H

#include "heap/rows.h"
#include "heap/words.h"
#include "stats/counters.h"

/* So many blocks at once: a heap is held for microseconds. */
#define HAK_FLUSH_BLOCKS_MOST 128u

/* Frees blocks of one class, at most HAK_FLUSH_BLOCKS_MOST; counts those published to busy heaps.
 * The array is overwritten. */
void hak_flush(void **blocks, uint32_t count, uint32_t class_index, struct stat_block *stats);

/* The same of blocks in rows, of any number; each word of a bitmap is changed at once. */
void hak_flush_rows(const struct rows *rows, uint32_t class_index, struct stat_block *stats);

/* The same of what words are to give. */
void hak_flush_words(const struct words *words, uint32_t class_index, struct stat_block *stats);

/* As hak_flush, for blocks of any classes; each is known to be the start of one. */
void hak_flush_mixed(void *const *blocks, uint32_t count, struct stat_block *stats);

/* Reports those that cannot be freed, as hak_flush would; frees none. */
void hak_flush_check(void *const *blocks, uint32_t count, uint32_t class_index);

/* Frees one block of a slab. */
struct slab;
void hak_flush_one(struct slab *slab, void *block);

/* Frees a large block. */
void hak_flush_large(void *block);

struct span;
/* Puts a freed block's span into the span cache of the processor's heap, or gives it up. */
void hak_flush_span(struct span *span);

/* What one heap's cache of spans may hold: a share of the most large blocks ever. Recent ones have
 * their own limit, and leave the others less. */
size_t hak_flush_spans_most(void);

#endif
