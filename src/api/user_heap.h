/* SPDX-License-Identifier: MIT */
/* api/user_heap.h - blocks from a heap that the program created.
 *
 * Owns        nothing; the heap is heap/private_heap.h's.
 * Invariants  a block comes from the requested heap, or not at all.
 * Threads     any.
 * Tests       tests/unit/api/hakmem_heap_test.c, tests/model/heaps_test.c
 */
#ifndef HAK_API_USER_HEAP_H
#define HAK_API_USER_HEAP_H

#include "hakmem/hakmem.h"
#include "heap/private_heap.h"
#include "os/frames.h"

/* A block of at least `bytes` aligned to `alignment`, and to what every block of the size is
 * aligned to; NULL with ENOMEM: out of memory, or refused. */
void *hak_user_heap_take(hakmem_heap *handle, size_t bytes, size_t alignment, bool is_zero,
                         struct os_caller caller);

/* While the heap profile is on: draws whether a new block of the heap is a sample, which counts as
 * so many bytes. */
void hak_user_heap_note(hakmem_heap *handle, const void *block, size_t bytes, size_t counted_bytes,
                        struct os_caller caller);

/* hak_private_enter, after what a jump left of a section of this thread has been mended. */
struct private_heap *hak_user_heap_enter(hakmem_heap *handle, const char *what);

/* Leaves a heap that was entered, and occasionally ticks. */
void hak_user_heap_leave(struct private_heap *heap);

#endif
