/* SPDX-License-Identifier: MIT */
/* span/span_purge.h - returns free spans to the kernel.
 *
 * Owns        nothing; spans that are being purged are out of the bins.
 * Invariants  what the kernel refuses stays warm and does not stop the rest. Where address space is
 *             limited, spans are unmapped as well, so that the program's own mappings and stacks
 *             find room: as often as the window may be divided into mappings.
 * Threads     no lock of spans is held across a system call. Callers that may run concurrently
 *             hold the region's purge lock, so that a fork waits until the spans are back.
 * Tests       tests/unit/span/span_heap_test.c, tests/unit/span/span_bare_test.c
 */
#ifndef HAK_SPAN_SPAN_PURGE_H
#define HAK_SPAN_SPAN_PURGE_H

#include "span/span.h"

/* Whether a span that becomes free must be unmapped: address space is limited, and enough of it is
 * mapped and free. */
bool hak_span_is_too_much(const struct span *span);

/* Whether the kernel supplies huge pages by default, and so refills returned memory that shares a
 * huge page with memory in use; to prevent that costs a purge a call more, or two. */
bool hak_span_is_refilled(const struct span *span);

/* Purges a used span without pieces, and unmaps it if address space is short; returns the state in
 * which it must become free. */
enum span_state hak_span_discard(const struct span *span);

/* Returns to the kernel the warm spans that were freed at or before `before_ms`, oldest first,
 * while more than `keep_bytes` are warm; at most `budget` spans. Returns bytes purged. */
size_t hak_span_purge(uint64_t before_ms, size_t keep_bytes, uint32_t budget);

/* The same for all excess memory, regardless of age. */
size_t hak_span_evict(size_t keep_bytes);

/* Unmaps all clean spans, where address space is limited or some were unmapped before, which they
 * join. Returns their bytes. */
size_t hak_span_strip(void);

#endif
