/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "api/hardened.h"
#include "cache/magazine.h"

/* The hot path, whole. Anything unusual - a thread without a heap, an empty or full bin, a large or
 * foreign or remote block, NULL - falls through to the slow function before anything is written. */

/* A block from the bin of the class; NULL: the slow way. */
HAK_INLINE void *take(size_t bytes)
{
    if (HAK_UNLIKELY(bytes > HAK_CLASS_HOT_BYTES_MAX))
        return NULL;
    return hak_bin_pop(hak_bin_at(hak_thread, hak_bin_of_eighth[(bytes + 7) / 8]));
}

/* Puts the block into the bin of its class; false: the slow way, nothing was written. */
HAK_INLINE bool give(void *block)
{
    struct cache_bins *cache = hak_thread;
    size_t offset = (uintptr_t)block - cache->base;
    if (HAK_UNLIKELY(offset >= cache->committed_bytes))
        return false;
    size_t scaled = hak_load_relaxed(&cache->tags[offset >> HAK_GRANULE_SHIFT]);
    if (HAK_UNLIKELY(scaled >= HAK_BIN_LIMIT))
        return false;
    struct bin *bin = hak_bin_at(cache, scaled);
    if (HAK_UNLIKELY(hak_bin_is_full(bin)))
        return false;
    hak_bin_push(bin, block);
    return true;
}

HAK_HOT void *hak_malloc(size_t bytes)
{
    void *block = take(bytes);
    return HAK_LIKELY(block != NULL) ? block : hak_malloc_slow(bytes);
}

HAK_HOT void hak_free(void *block)
{
    if (HAK_UNLIKELY(!give(block)))
        hak_free_slow(block);
}

/* The other ways in and out differ in what their slow paths know of the block: whether it came from
 * operator new, and of which size and alignment its owner takes it to be. */

#define WAY_IN(name, slow)                                                                         \
    HAK_HOT void *name(size_t bytes)                                                               \
    {                                                                                              \
        void *block = take(bytes);                                                                 \
        return HAK_LIKELY(block != NULL) ? block : slow(bytes);                                    \
    }
WAY_IN(hak_new, hak_new_slow)
WAY_IN(hak_new_array, hak_new_array_slow)

#define WAY_IN_NOTHROW(name, slow)                                                                 \
    HAK_HOT void *name(size_t bytes, const void *nothrow)                                          \
    {                                                                                              \
        (void)nothrow;                                                                             \
        void *block = take(bytes);                                                                 \
        return HAK_LIKELY(block != NULL) ? block : slow(bytes);                                    \
    }
WAY_IN_NOTHROW(hak_new_nothrow, hak_new_nothrow_slow)
WAY_IN_NOTHROW(hak_new_array_nothrow, hak_new_array_nothrow_slow)

#define WAY_OUT(name, kind)                                                                        \
    HAK_HOT void name(void *block)                                                                 \
    {                                                                                              \
        if (HAK_UNLIKELY(!give(block)))                                                            \
            hak_free_claimed_slow(block, HAK_ANY_BYTES, 0, kind);                                  \
    }
#define WAY_OUT_SIZED(name, kind)                                                                  \
    HAK_HOT void name(void *block, size_t bytes)                                                   \
    {                                                                                              \
        if (HAK_UNLIKELY(!give(block)))                                                            \
            hak_free_claimed_slow(block, bytes, 0, kind);                                          \
    }
#define WAY_OUT_ALIGNED(name, kind)                                                                \
    HAK_HOT void name(void *block, size_t alignment)                                               \
    {                                                                                              \
        if (HAK_UNLIKELY(!give(block)))                                                            \
            hak_free_claimed_slow(block, HAK_ANY_BYTES, alignment, kind);                          \
    }
#define WAY_OUT_SIZED_ALIGNED(name, kind)                                                          \
    HAK_HOT void name(void *block, size_t bytes, size_t alignment)                                 \
    {                                                                                              \
        if (HAK_UNLIKELY(!give(block)))                                                            \
            hak_free_claimed_slow(block, bytes, alignment, kind);                                  \
    }
WAY_OUT(hak_delete, MARK_NEW)
WAY_OUT(hak_delete_array, MARK_NEW_ARRAY)
WAY_OUT_SIZED(hak_free_sized, MARK_MALLOC)
WAY_OUT_SIZED(hak_delete_sized, MARK_NEW)
WAY_OUT_SIZED(hak_delete_array_sized, MARK_NEW_ARRAY)
WAY_OUT_ALIGNED(hak_delete_aligned, MARK_NEW)
WAY_OUT_ALIGNED(hak_delete_array_aligned, MARK_NEW_ARRAY)
WAY_OUT_SIZED_ALIGNED(hak_delete_sized_aligned, MARK_NEW)
WAY_OUT_SIZED_ALIGNED(hak_delete_array_sized_aligned, MARK_NEW_ARRAY)

/* C23 has the alignment first. */
HAK_HOT void hak_free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
    if (HAK_UNLIKELY(!give(block)))
        hak_free_claimed_slow(block, bytes, alignment, MARK_MALLOC);
}

HAK_LIBC_ALIAS(malloc, hak_malloc)
HAK_LIBC_ALIAS(free, hak_free)
HAK_LIBC_ALIAS(cfree, hak_free)
HAK_LIBC_ALIAS(__libc_malloc, hak_malloc)
HAK_LIBC_ALIAS(__libc_free, hak_free)
HAK_LIBC_ALIAS(free_sized, hak_free_sized)
HAK_LIBC_ALIAS(free_aligned_sized, hak_free_aligned_sized)

HAK_PUBLIC_ALIAS(hakmem_malloc, hak_malloc)
HAK_PUBLIC_ALIAS(hakmem_free, hak_free)

/* The C++ allocation functions by their mangled names ([new.delete], Itanium C++ ABI); the others
 * are in aligned.c and surface.c. */
HAK_LIBC_ALIAS(_Znwm, hak_new)
HAK_LIBC_ALIAS(_Znam, hak_new_array)
HAK_LIBC_ALIAS(_ZnwmRKSt9nothrow_t, hak_new_nothrow)
HAK_LIBC_ALIAS(_ZnamRKSt9nothrow_t, hak_new_array_nothrow)
/* LLVM and google/tcmalloc: a compiler may pass a hint how often the block will be used. All blocks
 * of a size are alike here. */
HAK_LIBC_ALIAS(_Znwm12__hot_cold_t, hak_new)
HAK_LIBC_ALIAS(_Znam12__hot_cold_t, hak_new_array)
HAK_LIBC_ALIAS(_ZnwmRKSt9nothrow_t12__hot_cold_t, hak_new_nothrow)
HAK_LIBC_ALIAS(_ZnamRKSt9nothrow_t12__hot_cold_t, hak_new_array_nothrow)

HAK_LIBC_ALIAS(_ZdlPv, hak_delete)
HAK_LIBC_ALIAS(_ZdaPv, hak_delete_array)
HAK_LIBC_ALIAS(_ZdlPvm, hak_delete_sized)
HAK_LIBC_ALIAS(_ZdaPvm, hak_delete_array_sized)
HAK_LIBC_ALIAS(_ZdlPvRKSt9nothrow_t, hak_delete)
HAK_LIBC_ALIAS(_ZdaPvRKSt9nothrow_t, hak_delete_array)
HAK_LIBC_ALIAS(_ZdlPvSt11align_val_t, hak_delete_aligned)
HAK_LIBC_ALIAS(_ZdaPvSt11align_val_t, hak_delete_array_aligned)
HAK_LIBC_ALIAS(_ZdlPvmSt11align_val_t, hak_delete_sized_aligned)
HAK_LIBC_ALIAS(_ZdaPvmSt11align_val_t, hak_delete_array_sized_aligned)
HAK_LIBC_ALIAS(_ZdlPvSt11align_val_tRKSt9nothrow_t, hak_delete_aligned)
HAK_LIBC_ALIAS(_ZdaPvSt11align_val_tRKSt9nothrow_t, hak_delete_array_aligned)
