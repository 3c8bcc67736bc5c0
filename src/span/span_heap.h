/* SPDX-License-Identifier: MIT */
/* span/span_heap.h - runs of granules: the free part of the window, best fit, coalescing.
 *
 * Owns        through span/span_free.h, the free spans: warm ones (their memory may hold data and
 *             be resident), clean ones (fresh or purged: they read as zero) and bare ones (unmapped
 *             as well, since address space is scarce).
 * Invariants  a span becomes clean only if the kernel said that its memory is gone. A bare one is
 *             mapped before it is taken; if others have mapped something there meanwhile, it is
 *             lost.
 * Threads     locks of sets (span/span_lock.h), never held across a system call: what is purged is
 *             first taken out (under the lock PURGE, so that a fork waits until it is back), and
 *             growth of the window happens before the lock is taken again.
 * Tests       tests/unit/span/span_heap_test.c, tests/model/
 */
#ifndef HAK_SPAN_SPAN_HEAP_H
#define HAK_SPAN_SPAN_HEAP_H

#include "span/span.h"
#include "span/span_lock.h"

/* A used span of `count` granules whose first is a multiple of `alignment` (granules, a power of
 * two), warm memory first. *is_zero tells whether it reads as zero. NULL: out of memory. */
struct span *hak_span_take(uint32_t count, uint32_t alignment, bool *is_zero);

/* The same, and more granules, as many as wished in all, if these are clean: the program touches
 * little of them. It comes from the set, if that has it, and goes back there unless it is too long
 * for a set. NULL: no memory for as many as wished; fewer may do. */
struct span *hak_span_take_wished(struct span_fit fit, uint32_t wished_count, uint32_t set,
                                  bool *is_zero);

/* A superslab of memory that was never used, without a record; a range of count 0: out of
 * memory. */
struct granule_range hak_span_fresh_superslab(void);

/* A used span of clean memory, with as much again behind it left free, so that a block that grows
 * has room; NULL when neither the free spans nor the window have that much. */
struct span *hak_span_take_roomy(struct span_fit fit);

/* Returns a used span; its memory may hold data or, in the second form, reads as zero where it was
 * not moved here. Where address space is limited and enough of it is free, the span is unmapped as
 * well. */
void hak_span_give(struct span *span);
void hak_span_give_clean(struct span *span);

/* Purges it first; false: the kernel refused, and it may hold data. */
bool hak_span_give_purged(struct span *span);

/* Returns used spans that hold data, are free since their `freed_ms` and were not moved. */
void hak_span_give_many(struct span **spans, uint32_t count);

/* Abandons a used span: some of its addresses may now belong to other mappings. */
void hak_span_lose(struct span *span);

/* Grows a used span in place into free neighbours behind it, or the window where it ends; false:
 * there is not enough. The new part may hold data. */
bool hak_span_extend(struct span *span, uint32_t count);

/* Returns the granules of a used span from `count` on. */
void hak_span_cut(struct span *span, uint32_t count);

/* Releases a used span's record while its granules stay in use; and makes one again (NULL: no
 * memory for a record, the granules stay with the caller). */
struct granule_range hak_span_detach(struct span *span);
struct span *hak_span_attach(struct granule_range range);

/* Bytes free and warm, free and clean or bare; without the lock, for decisions and statistics. */
size_t hak_span_warm_bytes(void);
size_t hak_span_clean_bytes(void);

/* Bytes of the window that the heap has received so far, in any state. */
size_t hak_span_known_bytes(void);

/* Bytes of address space abandoned by hak_span_lose. */
size_t hak_span_lost_bytes(void);

/* When the oldest warm span was freed; UINT64_MAX when there is none. */
uint64_t hak_span_oldest_ms(void);

/* True when the bins, the ages and the owner map agree (takes the locks). */
bool hak_span_heap_is_sound(void);

/* The calling thread left a section by a jump: if it holds a lock, all free spans behind it are
 * abandoned, and what it guards starts afresh. */
void hak_span_mend(void);

#endif
