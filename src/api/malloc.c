/* SPDX-License-Identifier: MIT */
#include "api/aligned.h"
#include "api/api.h"
#include "api/malloc_names.h"
#include "api/replaced.h"
#include "hardened/hardened.h"
#include "heap/cpu_cache.h"
#include "heap/slot.h"

/* The hot path, whole, where there is none in assembly. Anything unusual - a thread without a
 * cache, an empty or full bin, a large or foreign block, NULL - falls through to the slow function
 * before anything is written. Threads have slots here (heap/bins.h). */

HAK_INLINE struct bins *bins_here(void)
{
    return hak_word_peek(&hak_bins_of[hak_here->mm_cid]);
}

/* A block from the bin of the class; NULL: the slow way. */
HAK_INLINE void *take(size_t bytes)
{
    if (HAK_UNLIKELY(bytes > HAK_CLASS_BYTES_MAX))
        return NULL;
    struct bins *bins = bins_here();
    uint32_t scaled = bytes <= HAK_CLASS_HOT_BYTES_MAX
                          ? hak_word_peek(&hak_hot_sizes[(bytes + 7) / 8])
                          : hak_bin_in_lines(bytes);
    struct popped popped = hak_slot_pop_noted(bins, hak_bin_at(bins, scaled));
    return HAK_UNLIKELY(popped.noted != NULL) ? hak_malloc_noted(popped.block, bins, scaled, bytes)
                                              : popped.block;
}

/* Puts the block into the bin of its class; false: the slow way, nothing was written. */
HAK_INLINE bool give(void *block)
{
    size_t offset = (uintptr_t)block - hak_region.base;
    /* acquire: partner is the release in the region's `grow` */
    if (HAK_UNLIKELY(offset >= hak_load_acquire(&hak_region.committed_bytes)))
        return false;
    size_t scaled = hak_load_relaxed(&hak_region.tags[offset >> HAK_GRANULE_SHIFT]);
    if (HAK_UNLIKELY(scaled >= HAK_BIN_LIMIT))
        return false;
    struct bins *bins = bins_here();
    return hak_slot_push(bins, hak_bin_at(bins, scaled), block);
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
 * operator new, and of which size and alignment its owner takes it to be. A form of C++'s that
 * calls others where the program replaces some goes the slow way (api/replaced.h). */
#define PLAIN false
#define DERIVED hak_may_be_replaced()

#define WAY_IN(name, slow, form)                                                                   \
    HAK_HOT void *name(size_t bytes)                                                               \
    {                                                                                              \
        void *block = form ? NULL : take(bytes);                                                   \
        return HAK_LIKELY(block != NULL) ? block : slow(bytes);                                    \
    }
WAY_IN(hak_new, hak_new_slow, PLAIN)
WAY_IN(hak_new_array, hak_new_array_slow, DERIVED)

#define WAY_IN_NOTHROW(name, slow)                                                                 \
    HAK_HOT void *name(size_t bytes, const void *nothrow)                                          \
    {                                                                                              \
        (void)nothrow;                                                                             \
        void *block = DERIVED ? NULL : take(bytes);                                                \
        return HAK_LIKELY(block != NULL) ? block : slow(bytes);                                    \
    }
WAY_IN_NOTHROW(hak_new_nothrow, hak_new_nothrow_slow)
WAY_IN_NOTHROW(hak_new_array_nothrow, hak_new_array_nothrow_slow)

HAK_HOT int hak_posix_memalign(void **result, size_t alignment, size_t bytes)
{
    void *block = NULL;
    if (HAK_LIKELY(hak_is_power_of_two(alignment) && alignment >= sizeof(void *)))
        block = hak_pop_aligned(PARTITION_ORDINARY, alignment, bytes);
    if (HAK_UNLIKELY(block == NULL))
        return hak_posix_memalign_slow(result, alignment, bytes);
    *result = block;
    return 0;
}

#define WAY_IN_ALIGNED(name, slow)                                                                 \
    HAK_HOT void *name(size_t alignment, size_t bytes)                                             \
    {                                                                                              \
        void *block = NULL;                                                                        \
        if (HAK_LIKELY(hak_is_power_of_two(alignment)))                                            \
            block = hak_pop_aligned(PARTITION_ORDINARY, alignment, bytes);                         \
        return HAK_LIKELY(block != NULL) ? block : slow(alignment, bytes);                         \
    }
WAY_IN_ALIGNED(hak_aligned_alloc, hak_aligned_alloc_slow)
WAY_IN_ALIGNED(hak_memalign, hak_memalign_slow)

HAK_NEW_ALIGNED_FORMS(hak_new, PARTITION_ORDINARY)

#define WAY_OUT(name, kind, form)                                                                  \
    HAK_HOT void name(void *block)                                                                 \
    {                                                                                              \
        if (form || HAK_UNLIKELY(!give(block)))                                                    \
            hak_free_claimed_slow(block, HAK_ANY_BYTES, 0, kind);                                  \
    }
#define WAY_OUT_SIZED(name, kind, form)                                                            \
    HAK_HOT void name(void *block, size_t bytes)                                                   \
    {                                                                                              \
        if (form || HAK_UNLIKELY(!give(block)))                                                    \
            hak_free_claimed_slow(block, bytes, 0, kind);                                          \
    }
#define WAY_OUT_ALIGNED(name, kind, form)                                                          \
    HAK_HOT void name(void *block, size_t alignment)                                               \
    {                                                                                              \
        if (form || HAK_UNLIKELY(!give(block)))                                                    \
            hak_free_claimed_slow(block, HAK_ANY_BYTES, alignment, kind);                          \
    }
#define WAY_OUT_SIZED_ALIGNED(name, kind, form)                                                    \
    HAK_HOT void name(void *block, size_t bytes, size_t alignment)                                 \
    {                                                                                              \
        if (form || HAK_UNLIKELY(!give(block)))                                                    \
            hak_free_claimed_slow(block, bytes, alignment, kind);                                  \
    }
WAY_OUT(hak_delete, MARK_NEW, PLAIN)
WAY_OUT(hak_delete_array, MARK_NEW_ARRAY, DERIVED)
WAY_OUT_SIZED(hak_free_sized, MARK_MALLOC, PLAIN)
WAY_OUT_SIZED(hak_delete_sized, MARK_NEW, DERIVED)
WAY_OUT_SIZED(hak_delete_array_sized, MARK_NEW_ARRAY, DERIVED)
WAY_OUT_ALIGNED(hak_delete_aligned, MARK_NEW, PLAIN)
WAY_OUT_ALIGNED(hak_delete_array_aligned, MARK_NEW_ARRAY, DERIVED)
WAY_OUT_SIZED_ALIGNED(hak_delete_sized_aligned, MARK_NEW, DERIVED)
WAY_OUT_SIZED_ALIGNED(hak_delete_array_sized_aligned, MARK_NEW_ARRAY, DERIVED)

/* C23 has the alignment first. */
HAK_HOT void hak_free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
    if (HAK_UNLIKELY(!give(block)))
        hak_free_claimed_slow(block, bytes, alignment, MARK_MALLOC);
}

HAK_MALLOC_NAMES(HAK_LIBC_ALIAS, HAK_PUBLIC_ALIAS, HAK_WEAK_ALIAS)
