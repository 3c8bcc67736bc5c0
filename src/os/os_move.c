/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/check.h"
#include "os/os.h"
#include "os/os_fault.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#define MOVE (MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)

enum move_support { MOVE_UNTRIED, MOVE_WORKS, MOVE_MISSING };
static _Atomic uint32_t move_support;

/* Each lost target costs its addresses for good: after this many, the kernel is not asked again. */
#define TARGETS_LOST_MOST 8
static _Atomic uint32_t targets_lost;

/* The advice is followed where it is accepted: qemu-user accepts it on moved pages, and forgets. */
static bool discards(char *page)
{
    *page = 1;
    return madvise(page, hak_os_page_bytes(), MADV_DONTNEED) != 0 || *page == 0;
}

/* Moves a page of its own, once: a kernel that knows the call but not the flag, or an emulator,
 * must not be found out at the cost of a block. */
static bool move_works(void)
{
    uint32_t support = hak_load_relaxed(&move_support);
    if (HAK_LIKELY(support != MOVE_UNTRIED))
        return support == MOVE_WORKS;
    support = MOVE_MISSING;
    size_t bytes = hak_os_page_bytes();
    char *page = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (page != MAP_FAILED) {
        char *to = page + bytes;
        *page = 1;
        if (mremap(page, bytes, bytes, MOVE, to) == to && *page == 0 && *to == 1 &&
            discards(page) && discards(to))
            support = MOVE_WORKS;
        munmap(page, 2 * bytes);
    }
    hak_fetch_add_relaxed(&hak_os_counters.map_count, 2);
    hak_store_relaxed(&move_support, support);
    return support == MOVE_WORKS;
}

static enum os_move move(void *from, void *to, size_t bytes)
{
    /* The target holds nothing; that it refuses this advice betrays that all memory is locked.
     * Older kernels would then unlock everything that is one mapping with the source. */
    if (!move_works() || madvise(to, hak_os_page_bytes(), MADV_DONTNEED) != 0)
        return OS_MOVE_REFUSED;
    hak_fetch_add_relaxed(&hak_os_counters.move_count, 1);
    if (mremap(from, bytes, bytes, MOVE, to) == to) {
        hak_fetch_add_relaxed(&hak_os_counters.moved_bytes, bytes);
        return OS_MOVED;
    }
    /* The kernel may have unmapped the target before it failed. If the target is free it is mapped
     * again; if not, it was never unmapped or another thread took it, which look the same. */
    if (hak_os_map(to, bytes) == OS_MAPPED)
        return OS_MOVE_REFUSED;
    if (hak_fetch_add_relaxed(&targets_lost, 1) + 1 >= TARGETS_LOST_MOST)
        hak_store_relaxed(&move_support, MOVE_MISSING);
    return OS_MOVE_LOST;
}

enum os_move hak_os_move(void *from, void *to, size_t bytes)
{
    hak_assert(((uintptr_t)from | (uintptr_t)to | bytes) % hak_os_page_bytes() == 0);
    if (hak_os_fault_is_due(FAULT_MOVE))
        return hak_load_relaxed(&hak_os_fault.loses_targets) ? OS_MOVE_LOST : OS_MOVE_REFUSED;
    int saved = errno;
    enum os_move result = move(from, to, bytes);
    errno = saved;
    return result;
}
