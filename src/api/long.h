/* SPDX-License-Identifier: MIT */
/* api/long.h - entry points for blocks of the long partition (slab/size_class.h).
 *
 * Owns        nothing.
 * Invariants  as api/api.h says. Requests of up to 4 KiB are served from the long partition; larger
 *             ones are ordinary. A block keeps its partition when it is reallocated.
 * Threads     any.
 * Tests       tests/preload/tokens.cpp, tests/preload/hot_cold.cpp
 */
#ifndef HAK_API_LONG_H
#define HAK_API_LONG_H

#include "api/api.h"

void *hak_long_malloc(size_t bytes);
void *hak_long_calloc(size_t count, size_t bytes);
void *hak_long_realloc(void *block, size_t bytes); /* a block keeps its partition */
void *hak_long_reallocarray(void *block, size_t count, size_t bytes);
void *hak_long_aligned_alloc(size_t alignment, size_t bytes);
void *hak_long_memalign(size_t alignment, size_t bytes);
int hak_long_posix_memalign(void **result, size_t alignment, size_t bytes);
void *hak_long_new(size_t bytes);
void *hak_long_new_array(size_t bytes);
void *hak_long_new_nothrow(size_t bytes, const void *nothrow);
void *hak_long_new_array_nothrow(size_t bytes, const void *nothrow);
void *hak_long_new_aligned(size_t bytes, size_t alignment);
void *hak_long_new_array_aligned(size_t bytes, size_t alignment);
void *hak_long_new_aligned_nothrow(size_t bytes, size_t alignment, const void *nothrow);
void *hak_long_new_array_aligned_nothrow(size_t bytes, size_t alignment, const void *nothrow);

/* operator new with a hint how hot the block will be; cold ones are long. */
void *hak_hinted_new(size_t bytes, uint8_t hint);
void *hak_hinted_new_array(size_t bytes, uint8_t hint);
void *hak_hinted_new_nothrow(size_t bytes, const void *nothrow, uint8_t hint);
void *hak_hinted_new_array_nothrow(size_t bytes, const void *nothrow, uint8_t hint);
void *hak_hinted_new_aligned(size_t bytes, size_t alignment, uint8_t hint);
void *hak_hinted_new_array_aligned(size_t bytes, size_t alignment, uint8_t hint);
void *hak_hinted_new_aligned_nothrow(size_t bytes, size_t alignment, const void *nothrow,
                                     uint8_t hint);
void *hak_hinted_new_array_aligned_nothrow(size_t bytes, size_t alignment, const void *nothrow,
                                           uint8_t hint);
struct sized_block hak_hinted_new_sized(size_t bytes, uint8_t hint);
struct sized_block hak_hinted_new_aligned_sized(size_t bytes, size_t alignment, uint8_t hint);

#endif
