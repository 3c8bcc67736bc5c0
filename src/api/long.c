/* SPDX-License-Identifier: MIT */
#include "api/long.h"

#include "api/aligned.h"
#include "hakmem/hakmem.h"
#include "misuse/mark.h"

#include <errno.h>
#include <string.h>

/* The least hint that says that a block will be used: below it LLVM and tcmalloc call it cold. */
#define WARM_LEAST 128

HAK_INLINE void *pop(size_t bytes)
{
    return hak_pop_aligned(PARTITION_LONG, 1, bytes);
}

void *hak_long_malloc(size_t bytes)
{
    void *block = pop(bytes);
    return HAK_LIKELY(block != NULL) ? block : hak_long_slow(bytes);
}

void *hak_long_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (HAK_UNLIKELY(__builtin_mul_overflow(count, bytes, &total))) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = total < HAK_ZERO_KNOWLEDGE_BYTES ? pop(total) : NULL;
    return HAK_LIKELY(block != NULL) ? memset(block, 0, total) : hak_long_zero_slow(total);
}

void *hak_long_realloc(void *block, size_t bytes)
{
    return block == NULL ? hak_long_malloc(bytes) : hak_realloc(block, bytes);
}

void *hak_long_reallocarray(void *block, size_t count, size_t bytes)
{
    return hak_long_realloc(block, hak_product(count, bytes));
}

static void *take_aligned(size_t alignment, size_t bytes)
{
    void *block = hak_pop_aligned(PARTITION_LONG, alignment, bytes);
    return HAK_LIKELY(block != NULL) ? block : hak_long_aligned_slow(alignment, bytes);
}

void *hak_long_aligned_alloc(size_t alignment, size_t bytes)
{
    if (HAK_LIKELY(hak_is_power_of_two(alignment)))
        return take_aligned(alignment, bytes);
    errno = EINVAL;
    return NULL;
}

void *hak_long_memalign(size_t alignment, size_t bytes)
{
    return hak_is_power_of_two(alignment) ? take_aligned(alignment, bytes)
                                          : hak_memalign(alignment, bytes);
}

int hak_long_posix_memalign(void **result, size_t alignment, size_t bytes)
{
    if (HAK_UNLIKELY(!hak_is_power_of_two(alignment) || alignment < sizeof(void *)))
        return EINVAL;
    int saved = errno;
    void *block = take_aligned(alignment, bytes);
    errno = saved;
    if (HAK_UNLIKELY(block == NULL))
        return ENOMEM;
    *result = block;
    return 0;
}

#define NEW(name, parameters, slow, kind)                                                          \
    void *name parameters                                                                          \
    {                                                                                              \
        void *block = pop(bytes);                                                                  \
        return HAK_LIKELY(block != NULL) ? block : slow(bytes, kind);                              \
    }
NEW(hak_long_new, (size_t bytes), hak_new_long_slow, MARK_NEW)
NEW(hak_long_new_array, (size_t bytes), hak_new_long_slow, MARK_NEW_ARRAY)
NEW(hak_long_new_nothrow, (size_t bytes, const void *nothrow HAK_UNUSED), hak_new_long_nothrow_slow,
    MARK_NEW)
NEW(hak_long_new_array_nothrow, (size_t bytes, const void *nothrow HAK_UNUSED),
    hak_new_long_nothrow_slow, MARK_NEW_ARRAY)

HAK_NEW_ALIGNED_FORMS(hak_long_new, PARTITION_LONG)

void *hakmem_malloc_long(size_t bytes)
{
    return hak_long_malloc(bytes);
}

void *hakmem_calloc_long(size_t count, size_t bytes)
{
    return hak_long_calloc(count, bytes);
}

void *hakmem_aligned_alloc_long(size_t alignment, size_t bytes)
{
    return hak_long_aligned_alloc(alignment, bytes);
}

/* LLVM and google/tcmalloc: operator new with a hint how hot the block will be. Cold blocks stay,
 * and lie apart from those that are used. */
#define NEW_HINTED(name, parameters, arguments, usual, cold)                                       \
    void *name parameters                                                                          \
    {                                                                                              \
        return hint < WARM_LEAST ? cold arguments : usual arguments;                               \
    }
NEW_HINTED(hak_hinted_new, (size_t bytes, uint8_t hint), (bytes), hak_new, hak_long_new)
NEW_HINTED(hak_hinted_new_array, (size_t bytes, uint8_t hint), (bytes), hak_new_array,
           hak_long_new_array)
NEW_HINTED(hak_hinted_new_nothrow, (size_t bytes, const void *nothrow, uint8_t hint),
           (bytes, nothrow), hak_new_nothrow, hak_long_new_nothrow)
NEW_HINTED(hak_hinted_new_array_nothrow, (size_t bytes, const void *nothrow, uint8_t hint),
           (bytes, nothrow), hak_new_array_nothrow, hak_long_new_array_nothrow)
NEW_HINTED(hak_hinted_new_aligned, (size_t bytes, size_t alignment, uint8_t hint),
           (bytes, alignment), hak_new_aligned, hak_long_new_aligned)
NEW_HINTED(hak_hinted_new_array_aligned, (size_t bytes, size_t alignment, uint8_t hint),
           (bytes, alignment), hak_new_array_aligned, hak_long_new_array_aligned)
NEW_HINTED(hak_hinted_new_aligned_nothrow,
           (size_t bytes, size_t alignment, const void *nothrow, uint8_t hint),
           (bytes, alignment, nothrow), hak_new_aligned_nothrow, hak_long_new_aligned_nothrow)
NEW_HINTED(hak_hinted_new_array_aligned_nothrow,
           (size_t bytes, size_t alignment, const void *nothrow, uint8_t hint),
           (bytes, alignment, nothrow), hak_new_array_aligned_nothrow,
           hak_long_new_array_aligned_nothrow)

HAK_LIBC_ALIAS(_Znwm12__hot_cold_t, hak_hinted_new)
HAK_LIBC_ALIAS(_Znam12__hot_cold_t, hak_hinted_new_array)
HAK_LIBC_ALIAS(_ZnwmRKSt9nothrow_t12__hot_cold_t, hak_hinted_new_nothrow)
HAK_LIBC_ALIAS(_ZnamRKSt9nothrow_t12__hot_cold_t, hak_hinted_new_array_nothrow)
HAK_LIBC_ALIAS(_ZnwmSt11align_val_t12__hot_cold_t, hak_hinted_new_aligned)
HAK_LIBC_ALIAS(_ZnamSt11align_val_t12__hot_cold_t, hak_hinted_new_array_aligned)
HAK_LIBC_ALIAS(_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t, hak_hinted_new_aligned_nothrow)
HAK_LIBC_ALIAS(_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t,
               hak_hinted_new_array_aligned_nothrow)

struct sized_block hak_hinted_new_sized(size_t bytes, uint8_t hint)
{
    return hak_sized(hak_hinted_new(bytes, hint), bytes);
}

struct sized_block hak_hinted_new_aligned_sized(size_t bytes, size_t alignment, uint8_t hint)
{
    return hak_sized(hak_hinted_new_aligned(bytes, alignment, hint), bytes);
}

HAK_WEAK_ALIAS(__size_returning_new_hot_cold, hak_hinted_new_sized)
HAK_WEAK_ALIAS(__size_returning_new_aligned_hot_cold, hak_hinted_new_aligned_sized)
