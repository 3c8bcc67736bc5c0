/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/os_move.h"

#include "base/check.h"
#include "os/os.h"
#include "os/os_fault.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* The target is a hint: what is several mappings, and would be moved one by one, is refused. */
#define MOVE_NEAR (MREMAP_MAYMOVE | MREMAP_DONTUNMAP)
#define MOVE_ONTO (MREMAP_MAYMOVE | MREMAP_FIXED)

enum move_support { MOVE_UNTRIED, MOVE_WORKS, MOVE_MISSING };
static _Atomic uint32_t move_support;

/* Each lost target costs its addresses for good: after this many, the kernel is not asked again. */
#define TARGETS_LOST_MOST 8
static _Atomic uint32_t targets_lost;

/* Since memory was found locked: so many moves are not tried for each that is. */
#define ASKED_PER_TRIAL 64u
static _Atomic uint32_t is_locked;
static _Atomic uint32_t asked;

/* libc's function does not pass every hint on: some versions do with MREMAP_FIXED only. */
static void *remap(void *from, void *to, size_t bytes, int flags)
{
    if (hak_os_fault_is_due(FAULT_MOVE)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mremap, from, bytes, bytes, flags, to);
}

/* The advice is followed where it is accepted: qemu-user accepts it on moved pages, and forgets. */
static bool discards(char *page)
{
    *page = 1;
    return madvise(page, hak_os_page_bytes(), MADV_DONTNEED) != 0 || *page == 0;
}

/* Pages that hold nothing: that they refuse this advice betrays that all memory is locked. Older
 * kernels would then unlock everything that is one mapping with what is moved. */
static bool may_be_left(void *empty)
{
    bool is_refused = madvise(empty, hak_os_page_bytes(), MADV_DONTNEED) != 0;
    if (is_refused != hak_load_relaxed(&is_locked))
        hak_store_relaxed(&is_locked, is_refused);
    return !is_refused;
}

/* What moving that page tells. That memory or mappings are short now, or locked, tells nothing. */
static enum move_support try_page(char *page)
{
    size_t bytes = hak_os_page_bytes();
    if (!may_be_left(page))
        return MOVE_UNTRIED;
    *page = 1;
    char *to = remap(page, NULL, bytes, MOVE_NEAR);
    if (to == MAP_FAILED)
        return errno == ENOMEM || errno == EAGAIN ? MOVE_UNTRIED : MOVE_MISSING;
    bool works = to != page && *page == 0 && *to == 1 && discards(page) && discards(to);
    if (to != page)
        munmap(to, bytes);
    return works ? MOVE_WORKS : MOVE_MISSING;
}

/* Moves a page of its own, once: a kernel that knows the call but not the flag, or an emulator,
 * must not be found out at the cost of a block. */
static bool move_works(void)
{
    uint32_t support = hak_load_relaxed(&move_support);
    if (HAK_LIKELY(support != MOVE_UNTRIED))
        return support == MOVE_WORKS;
    size_t bytes = hak_os_page_bytes();
    char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (page == MAP_FAILED)
        return false;
    support = try_page(page);
    munmap(page, bytes);
    hak_fetch_add_relaxed(&hak_os_counters.map_count, support == MOVE_WORKS ? 3 : 2);
    hak_store_relaxed(&move_support, support);
    return support == MOVE_WORKS;
}

static enum os_move lose(void)
{
    if (hak_fetch_add_relaxed(&targets_lost, 1) + 1 >= TARGETS_LOST_MOST)
        hak_store_relaxed(&move_support, MOVE_MISSING);
    return OS_MOVE_LOST;
}

/* After a move that failed: the target is free, unless another thread has taken it. */
static enum os_move map_again(void *to, size_t bytes)
{
    if (HAK_CHECK_LEVEL >= 2 && hak_load_relaxed(&hak_os_fault.loses_targets) != 0)
        return OS_MOVE_LOST;
    return hak_os_map(to, bytes) == OS_MAPPED ? OS_MOVE_REFUSED : lose();
}

/* The pages arrived at `got`, as one mapping: the target was taken, or the kernel gave nothing for
 * the hint, as Linux 6.7 to 6.11 where huge pages fit. They go on to the target if it is ours. */
static enum os_move move_on(void *got, void *from, void *to, size_t bytes)
{
    enum os_move result = map_again(to, bytes);
    if (result == OS_MOVE_REFUSED) {
        hak_fetch_add_relaxed(&hak_os_counters.move_count, 1);
        if (remap(got, to, bytes, MOVE_ONTO) == to)
            return OS_MOVED;
        /* It may have unmapped the target before it failed; if not, that looks like others' now. */
        result = map_again(to, bytes);
    }
    memcpy(from, got, bytes); /* `from` is still mapped: this cannot fail */
    if (munmap(got, bytes) != 0)
        madvise(got, bytes, MADV_DONTNEED);
    hak_fetch_add_relaxed(&hak_os_counters.map_count, 1);
    return result;
}

static enum os_move move(void *from, void *to, size_t bytes)
{
    if (!move_works() || !may_be_left(to) || !hak_os_release(to, bytes))
        return OS_MOVE_UNTRIED;
    hak_fetch_add_relaxed(&hak_os_counters.move_count, 1);
    void *got = remap(from, to, bytes, MOVE_NEAR);
    enum os_move result = OS_MOVED;
    if (got == MAP_FAILED)
        result = map_again(to, bytes);
    else if (HAK_UNLIKELY(got != to))
        result = move_on(got, from, to, bytes);
    if (result == OS_MOVED)
        hak_fetch_add_relaxed(&hak_os_counters.moved_bytes, bytes);
    return result;
}

enum os_move hak_os_move(void *from, void *to, size_t bytes)
{
    hak_assert(((uintptr_t)from | (uintptr_t)to | bytes) % hak_os_page_bytes() == 0);
    int saved = errno;
    enum os_move result = move(from, to, bytes);
    errno = saved;
    return result;
}

bool hak_os_may_move(void)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&is_locked)) &&
        hak_fetch_add_relaxed(&asked, 1) % ASKED_PER_TRIAL != ASKED_PER_TRIAL - 1)
        return false;
    int saved = errno;
    bool works = move_works();
    errno = saved;
    return works;
}
