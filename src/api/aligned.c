/* SPDX-License-Identifier: MIT */
#include "api/aligned.h"
#include "api/api.h"
#include "base/limits.h"
#include "misuse/harden.h"
#include "misuse/mark.h"
#include "os/os.h"

#include <errno.h>

HAK_NOINLINE void *hak_pop_larger_aligned(size_t alignment, size_t bytes)
{
    uint32_t class_index = hak_class_of_aligned(bytes, alignment);
    return class_index == HAK_CLASS_NONE ? NULL : hak_bin_pop(class_index);
}

/* Alignments that every block has anyway take the hot path. */
void *hak_aligned(size_t alignment, size_t bytes)
{
    bool is_ordinary = alignment <= HAK_ORDINARY_ALIGNMENT && bytes > alignment / 2;
    if (is_ordinary && !hak_harden_has(HARDEN_FENCED)) /* whose blocks may end where theirs do */
        return hak_malloc(bytes);
    void *block = hak_pop_aligned(PARTITION_ORDINARY, alignment, bytes);
    return HAK_LIKELY(block != NULL) ? block : hak_aligned_slow(alignment, bytes);
}

/* C17: an alignment that is not supported fails; glibc says EINVAL. The size need not be a
 * multiple. */
void *hak_aligned_alloc(size_t alignment, size_t bytes)
{
    if (!hak_is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return hak_aligned(alignment, bytes);
}

static HAK_NOINLINE int posix_memalign_slow(void **result, size_t alignment, size_t bytes)
{
    int saved = errno;
    void *block = hak_aligned(alignment, bytes);
    errno = saved;
    if (block == NULL)
        return ENOMEM;
    *result = block;
    return 0;
}

/* POSIX.1-2017: EINVAL unless the alignment is a power of two multiple of sizeof(void *); errno is
 * not touched, *result only on success. */
int hak_posix_memalign(void **result, size_t alignment, size_t bytes)
{
    if (HAK_UNLIKELY(!hak_is_power_of_two(alignment) || alignment < sizeof(void *)))
        return EINVAL;
    void *block = hak_pop_aligned(PARTITION_ORDINARY, alignment, bytes);
    if (HAK_UNLIKELY(block == NULL))
        return posix_memalign_slow(result, alignment, bytes);
    *result = block;
    return 0;
}

/* glibc manual: like aligned_alloc; glibc rounds the alignment up to a power of two. */
void *hak_memalign(size_t alignment, size_t bytes)
{
    if (alignment > HAK_REQUEST_BYTES_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    return hak_aligned(hak_power_of_two_up(alignment), bytes);
}

void *hak_valloc(size_t bytes)
{
    return hak_aligned(hak_os_page_bytes(), bytes);
}

/* glibc manual: the size is rounded up to whole pages. */
void *hak_pvalloc(size_t bytes)
{
    size_t page = hak_os_page_bytes();
    if (bytes > HAK_REQUEST_BYTES_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    return hak_aligned(page, hak_align_up(bytes == 0 ? 1 : bytes, page));
}

HAK_NEW_ALIGNED_FORMS(hak_new, PARTITION_ORDINARY)

HAK_LIBC_ALIAS(aligned_alloc, hak_aligned_alloc)
HAK_LIBC_ALIAS(posix_memalign, hak_posix_memalign)
HAK_LIBC_ALIAS(memalign, hak_memalign)
HAK_LIBC_ALIAS(valloc, hak_valloc)
HAK_LIBC_ALIAS(pvalloc, hak_pvalloc)
HAK_LIBC_ALIAS(__posix_memalign, hak_posix_memalign)
HAK_LIBC_ALIAS(__libc_memalign, hak_memalign)
HAK_LIBC_ALIAS(__libc_valloc, hak_valloc)
HAK_LIBC_ALIAS(__libc_pvalloc, hak_pvalloc)

HAK_WEAK_ALIAS(_ZnwmSt11align_val_t, hak_new_aligned)
HAK_WEAK_ALIAS(_ZnamSt11align_val_t, hak_new_array_aligned)
HAK_WEAK_ALIAS(_ZnwmSt11align_val_tRKSt9nothrow_t, hak_new_aligned_nothrow)
HAK_WEAK_ALIAS(_ZnamSt11align_val_tRKSt9nothrow_t, hak_new_array_aligned_nothrow)
