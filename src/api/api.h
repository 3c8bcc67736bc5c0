/* SPDX-License-Identifier: MIT */
/* api/api.h - hakmem's entry points by their own names; the libc names are aliases of these.
 *
 * Owns        nothing; each function is defined in the file that its group names.
 * Invariants  a request above PTRDIFF_MAX, or for which there is no memory, returns NULL with
 *             ENOMEM and has no effect; free keeps errno. Blocks are aligned to 16, those of
 *             requests up to 8 bytes to 8.
 * Threads     all functions may be called by any thread, also before main and in destructors.
 * Tests       tests/unit/api/, tests/model/, tests/preload/
 */
#ifndef HAK_API_API_H
#define HAK_API_API_H

#include "base/compiler.h"
#include "os/frames.h"

#include <stdio.h>

/* malloc.c: the hot path. */
void *hak_malloc(size_t bytes);
void hak_free(void *block);
/* C23. */
void hak_free_sized(void *block, size_t bytes);
void hak_free_aligned_sized(void *block, size_t alignment, size_t bytes);
/* C17, POSIX.1-2017 and the glibc manual. */
void *hak_aligned_alloc(size_t alignment, size_t bytes);
int hak_posix_memalign(void **result, size_t alignment, size_t bytes);
void *hak_memalign(size_t alignment, size_t bytes);
/* C++: operator new throws std::bad_alloc or, when nothrow, returns NULL. */
void *hak_new(size_t bytes);
void *hak_new_array(size_t bytes);
void *hak_new_nothrow(size_t bytes, const void *nothrow);
void *hak_new_array_nothrow(size_t bytes, const void *nothrow);
void *hak_new_aligned(size_t bytes, size_t alignment);
void *hak_new_array_aligned(size_t bytes, size_t alignment);
void *hak_new_aligned_nothrow(size_t bytes, size_t alignment, const void *nothrow);
void *hak_new_array_aligned_nothrow(size_t bytes, size_t alignment, const void *nothrow);
void hak_delete(void *block);
void hak_delete_array(void *block);
void hak_delete_sized(void *block, size_t bytes);
void hak_delete_array_sized(void *block, size_t bytes);
void hak_delete_aligned(void *block, size_t alignment);
void hak_delete_array_aligned(void *block, size_t alignment);
void hak_delete_sized_aligned(void *block, size_t bytes, size_t alignment);
void hak_delete_array_sized_aligned(void *block, size_t bytes, size_t alignment);

/* replaced.c: called when a constructor throws behind the form of operator new that does not. */
void hak_delete_nothrow(void *block, const void *nothrow);
void hak_delete_array_nothrow(void *block, const void *nothrow);
void hak_delete_aligned_nothrow(void *block, size_t alignment, const void *nothrow);
void hak_delete_array_aligned_nothrow(void *block, size_t alignment, const void *nothrow);

/* malloc_noted.c: a block that was popped when its bin's countdown passed 0, for a request of so
 * many bytes; or a sampled one in its place. */
struct bins;
void *hak_malloc_noted(void *block, struct bins *bins, size_t scaled, size_t bytes);
void *hak_malloc_noted_for(void *block, struct bins *bins, size_t scaled, size_t bytes,
                           struct os_caller caller);
/* The same for aligned blocks, which are no samples: those take the slow path. */
void *hak_aligned_noted(void *block, struct bins *bins, size_t scaled);
int hak_posix_memalign_noted(void **result, void *block, struct bins *bins, size_t scaled);

/* malloc_slow.c: everything that is unusual. */
void *hak_malloc_slow(size_t bytes);
/* While some call sites are diverted (heap/route.h): a block for a request of a caller's. NULL: the
 * ordinary way serves it, or says why not. */
void *hak_malloc_routed(size_t bytes, struct os_caller caller);
void hak_free_slow(void *block);
/* The same, of a block that is said to be so large (SIZE_MAX: nothing is said), so aligned (0:
 * nothing is said) and allocated so (enum mark_kind). */
void hak_free_claimed_slow(void *block, size_t bytes, size_t alignment, int kind);
/* A block of at least `bytes` aligned to `alignment`, a power of two; the zero form reads as
 * zero. */
void *hak_aligned_slow(size_t alignment, size_t bytes);

/* A block aligned to a power of two, from its bin if that has one. */
void *hak_aligned(size_t alignment, size_t bytes);
void *hak_calloc_slow(size_t bytes);
/* From here on calloc asks its slow path first: that one knows which memory is zero already. */
#define HAK_ZERO_KNOWLEDGE_BYTES 4096
/* On behalf of a call that is counted already (stats/exact.h); `partition` is an enum
 * hak_partition. A block that is spared is one that the caller can do without (process/serve.h). */
void *hak_malloc_uncounted(size_t bytes, int partition, bool is_spared);
void hak_free_uncounted(void *block);

/* The same in the long partition (slab/size_class.h). */
void *hak_long_slow(size_t bytes);
void *hak_long_zero_slow(size_t bytes);
void *hak_long_aligned_slow(size_t alignment, size_t bytes);

/* Flushes all blocks of the calling thread's cache; nothing for a thread without one. */
void hak_thread_flush(void);

/* realloc.c: ISO C, POSIX and the glibc manual. */
void *hak_calloc(size_t count, size_t bytes);
void *hak_realloc(void *block, size_t bytes);
void *hak_reallocarray(void *block, size_t count, size_t bytes);
size_t hak_malloc_usable_size(void *block);

/* aligned.c: what is unusual about the aligned family. */
void *hak_aligned_alloc_slow(size_t alignment, size_t bytes);
int hak_posix_memalign_slow(void **result, size_t alignment, size_t bytes);
void *hak_memalign_slow(size_t alignment, size_t bytes);
void *hak_valloc(size_t bytes);
void *hak_pvalloc(size_t bytes);

/* operators.c: what is unusual about operator new; `kind` is an enum mark_kind. */
void *hak_new_slow(size_t bytes);
void *hak_new_array_slow(size_t bytes);
void *hak_new_nothrow_slow(size_t bytes);
void *hak_new_array_nothrow_slow(size_t bytes);
void *hak_new_aligned_slow(size_t bytes, size_t alignment, int kind, int partition);
void *hak_new_aligned_nothrow_slow(size_t bytes, size_t alignment, int kind, int partition);
void *hak_new_long_slow(size_t bytes, int kind); /* in the long partition */
void *hak_new_long_nothrow_slow(size_t bytes, int kind);

/* glibc.c: operator new that returns the usable size, at least the requested one (P0901). */
struct sized_block {
    void *block;
    size_t bytes;
};
struct sized_block hak_sized(void *block, size_t bytes); /* of a request of so many */
struct sized_block hak_new_sized(size_t bytes);
struct sized_block hak_new_aligned_sized(size_t bytes, size_t alignment);

/* glibc.c: what libc builds on realloc, and what other systems' C libraries have. */
void *hak_libc_reallocarray(void *block, size_t count, size_t bytes);
void *hak_reallocf(void *block, size_t bytes);
size_t hak_malloc_good_size(size_t bytes);

/* control.c: the glibc manual. */
int hak_malloc_trim(size_t keep_bytes);
int hak_mallopt(int parameter, int value);

/* glibc_info.c: the glibc manual. */
void hak_malloc_stats(void);
int hak_malloc_info(int options, FILE *stream);

/* catch.cpp: take(bytes, alignment), or NULL when it throws. */
void *hak_catch(void *(*take)(size_t, size_t), size_t bytes, size_t alignment);

/* foreign.c: pointers that are not hakmem's. */
void hak_foreign_free(void *block);
void *hak_foreign_realloc(void *block, size_t bytes);

#endif
