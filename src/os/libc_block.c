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

/* The header of a block that the kernel mapped alone: where its mapping starts and ends. */
static bool is_mapped(uintptr_t start, struct header header)
{
    uintptr_t bytes = header.bytes_and_flags & ~FLAGS;
    return (header.bytes_and_flags & IS_MAPPED) != 0 &&
           ((start - header.bytes_before) | (header.bytes_before + bytes)) % HAK_PAGE_BYTES_LEAST ==
               0;
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
    if (header.bytes_and_flags & IS_MAPPED)
        return is_mapped(start, header);
    uintptr_t bytes = header.bytes_and_flags & ~FLAGS;
    return bytes % ALIGNMENT == 0 && bytes >= BYTES_LEAST && bytes < BYTES_MOST;
}

bool hak_os_seems_mapped_by_libc(uintptr_t address)
{
    uintptr_t start = address - sizeof(struct header);
    return IS_GLIBCS && address % ALIGNMENT == 0 && hak_os_is_readable(start) &&
           is_mapped(start, read_header(start));
}
