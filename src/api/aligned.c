/* SPDX-License-Identifier: MIT */
#include "api/aligned.h"
#include "api/api.h"
#include "base/limits.h"
#include "os/os.h"

#include <errno.h>

HAK_NOINLINE void *hak_pop_larger_aligned(size_t alignment, size_t bytes)
{
    uint32_t class_index = hak_class_of_aligned(bytes, alignment);
    return class_index == HAK_CLASS_NONE ? NULL : hak_bin_pop(class_index);
}

void *hak_aligned(size_t alignment, size_t bytes)
{
    void *block = hak_pop_aligned(PARTITION_ORDINARY, alignment, bytes);
    return HAK_LIKELY(block != NULL) ? block : hak_aligned_slow(alignment, bytes);
}

/* C17: an alignment that is not supported fails; glibc says EINVAL. The size need not be a
 * multiple. */
void *hak_aligned_alloc_slow(size_t alignment, size_t bytes)
{
    if (!hak_is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return hak_aligned(alignment, bytes);
}

/* POSIX.1-2017: EINVAL unless the alignment is a power of two multiple of sizeof(void *); errno is
 * not touched, *result only on success. */
int hak_posix_memalign_slow(void **result, size_t alignment, size_t bytes)
{
    if (!hak_is_power_of_two(alignment) || alignment < sizeof(void *))
        return EINVAL;
    int saved = errno;
    void *block = hak_aligned(alignment, bytes);
    errno = saved;
    if (block == NULL)
        return ENOMEM;
    *result = block;
    return 0;
}

/* glibc manual: like aligned_alloc; glibc rounds the alignment up to a power of two. */
void *hak_memalign_slow(size_t alignment, size_t bytes)
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

HAK_LIBC_ALIAS(valloc, hak_valloc)
HAK_LIBC_ALIAS(pvalloc, hak_pvalloc)
HAK_LIBC_ALIAS(__libc_valloc, hak_valloc)
HAK_LIBC_ALIAS(__libc_pvalloc, hak_pvalloc)
