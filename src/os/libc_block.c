/* SPDX-License-Identifier: MIT */
#include "os/libc_block.h"

#include "base/limits.h"
#include "os/frames.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_GLIBCS 0 /* it is the sanitizer's */
#elif !defined(__GLIBC__)
#define IS_GLIBCS 0
#elif defined(__has_feature)
#define IS_GLIBCS !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define IS_GLIBCS 1
#endif

/* Before each block of glibc's lie two words: the bytes before it, and its own with flags. */
struct header {
    uintptr_t bytes_before;
    uintptr_t bytes_and_flags;
};
#define FLAGS ((uintptr_t)7)
#define IS_MAPPED ((uintptr_t)2) /* by the kernel for this block alone */
#define ALIGNMENT 16u
#define BYTES_LEAST 32u
#define BYTES_MOST ((uintptr_t)1 << 40) /* in a heap; above it is the kernel that maps */

/* Memory that may not be hakmem's, so sanitizers must not check the reads. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static struct header read_header(
    uintptr_t at)
{
    const volatile struct header *header = (const volatile struct header *)at;
    return (struct header){header->bytes_before, header->bytes_and_flags};
}

bool hak_os_may_be_libc_block(uintptr_t address)
{
    if (!IS_GLIBCS)
        return true;
    if (address % ALIGNMENT != 0)
        return false;
    uintptr_t start = address - sizeof(struct header);
    if (!hak_os_is_readable(start))
        return !hak_os_is_unreadable(start);
    struct header header = read_header(start);
    uintptr_t bytes = header.bytes_and_flags & ~FLAGS;
    if (header.bytes_and_flags & IS_MAPPED)
        return ((start - header.bytes_before) | (header.bytes_before + bytes)) %
                   HAK_PAGE_BYTES_LEAST ==
               0;
    return bytes % ALIGNMENT == 0 && bytes >= BYTES_LEAST && bytes < BYTES_MOST;
}
