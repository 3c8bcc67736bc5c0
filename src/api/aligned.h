/* SPDX-License-Identifier: MIT */
/* api/aligned.h - small blocks of an alignment, from their bins.
 *
 * Owns        nothing.
 * Invariants  the alignment is a power of two.
 * Threads     any.
 * Tests       tests/unit/api/aligned_test.c, tests/preload/operators.cpp, tests/preload/tokens.cpp
 */
#ifndef HAK_API_ALIGNED_H
#define HAK_API_ALIGNED_H

#include "api/replaced.h"
#include "base/bits.h"
#include "heap/bins.h"
#include "heap/draw.h"

/* A block above 4 KiB from its bin, which both partitions share; NULL: the slow way. For callers
 * that know that nobody draws samples. */
void *hak_pop_larger_aligned(size_t alignment, size_t bytes);

/* A block of any size from its bin; NULL: the slow way. A size near the end of the address space
 * wraps to 0. */
HAK_INLINE void *hak_pop_aligned(enum hak_partition partition, size_t alignment, size_t bytes)
{
    size_t rounded = hak_align_up(bytes + (bytes == 0), alignment);
    if (hak_draw_is_on())
        return NULL;
    if (HAK_UNLIKELY(rounded - 1 >= HAK_CLASS_EVEN_BYTES_MAX))
        return hak_pop_larger_aligned(alignment, bytes);
    return hak_bin_pop(hak_class_in(hak_class_of(rounded), partition));
}

/* Defines an operator new of an alignment ([new.delete.single]), with parameters `bytes` and
 * `alignment`; `slow` is hak_new_aligned_slow or its nothrow form. `passes`: it may have to call
 * another form (api/replaced.h). */
#define HAK_NEW_ALIGNED(name, parameters, slow, kind, partition, passes)                           \
    void *name parameters                                                                          \
    {                                                                                              \
        bool is_usual = !(passes) && hak_is_power_of_two(alignment);                               \
        void *block = HAK_LIKELY(is_usual) ? hak_pop_aligned(partition, alignment, bytes) : NULL;  \
        return HAK_LIKELY(block != NULL) ? block : slow(bytes, alignment, kind, partition);        \
    }
/* All four forms: single and array, throwing and not. */
#define HAK_NEW_ALIGNED_FORMS(prefix, partition)                                                   \
    HAK_NEW_ALIGNED(prefix##_aligned, (size_t bytes, size_t alignment), hak_new_aligned_slow,      \
                    MARK_NEW, partition, false)                                                    \
    HAK_NEW_ALIGNED(prefix##_array_aligned, (size_t bytes, size_t alignment),                      \
                    hak_new_aligned_slow, MARK_NEW_ARRAY, partition, hak_may_be_replaced())        \
    HAK_NEW_ALIGNED(prefix##_aligned_nothrow,                                                      \
                    (size_t bytes, size_t alignment, const void *nothrow HAK_UNUSED),              \
                    hak_new_aligned_nothrow_slow, MARK_NEW, partition, hak_may_be_replaced())      \
    HAK_NEW_ALIGNED(prefix##_array_aligned_nothrow,                                                \
                    (size_t bytes, size_t alignment, const void *nothrow HAK_UNUSED),              \
                    hak_new_aligned_nothrow_slow, MARK_NEW_ARRAY, partition,                       \
                    hak_may_be_replaced())

#endif
