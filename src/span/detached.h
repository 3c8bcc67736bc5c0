/* SPDX-License-Identifier: MIT */
/* span/detached.h - granules without a record: those of superslabs.
 *
 * Owns        their number, and its peaks in intervals as long as free memory is kept.
 * Invariants  none.
 * Threads     any.
 * Tests       tests/unit/span/span_heap_test.c
 */
#ifndef HAK_SPAN_DETACHED_H
#define HAK_SPAN_DETACHED_H

#include "base/atomic.h"

void hak_note_detached(uint32_t count);
void hak_note_attached(uint32_t count);

/* Bytes by which less is detached now than lately: within once to twice the time for which free
 * memory is kept. */
size_t hak_span_attached_bytes(void);

#endif
