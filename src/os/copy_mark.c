/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/copy_mark.h"

#include "os/os.h"
#include "os/os_fault.h"

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* A waiter looks again after so long, should a waking be lost. */
#define WAIT_MS 100

/* Used until the page is mapped, or if it cannot be. */
static struct copy_mark never_cleared = {.state = COPY_SETTLED};
struct copy_mark *hak_copy_mark = &never_cleared;
static void (*settle_copy)(void);

void hak_copy_mark_start(void (*settle)(void))
{
    int saved = errno;
    size_t bytes = hak_os_page_bytes();
    settle_copy = settle;
    void *page = MAP_FAILED;
    if (!hak_os_fault_is_due(FAULT_MAP))
        page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hak_fetch_add_relaxed(&hak_os_counters.map_count, 1);
    if (page != MAP_FAILED && hak_os_is_advised(page) &&
        madvise(page, bytes, MADV_WIPEONFORK) == 0) {
        hak_copy_mark = page;
        hak_store_relaxed(&hak_copy_mark->state, COPY_SETTLED);
    } else if (page != MAP_FAILED) {
        munmap(page, bytes);
    }
    errno = saved;
}

static void settle(void)
{
    settle_copy();
    hak_copy_mark_settled();
    hak_os_futex_wake(&hak_copy_mark->state, INT_MAX);
}

void hak_copy_notice(void)
{
    uint64_t signals = hak_os_block_signals();
    uint32_t expected = COPY_UNNOTICED;
    /* relaxed: the exchange only elects one thread; what it settles was written before the copy */
    if (hak_cas_relaxed(&hak_copy_mark->state, &expected, COPY_SETTLING))
        settle();
    /* acquire: partner is the release in hak_copy_mark_settled */
    while (hak_load_acquire(&hak_copy_mark->state) != COPY_SETTLED)
        hak_os_futex_wait(&hak_copy_mark->state, COPY_SETTLING, WAIT_MS);
    hak_os_restore_signals(signals);
}

void hak_copy_mark_clear(void)
{
    if (hak_copy_mark != &never_cleared)
        return;
    hak_store_relaxed(&hak_copy_mark->is_printing, 0);
    hak_store_relaxed(&hak_copy_mark->is_looking, 0);
    hak_store_relaxed(&hak_copy_mark->next_look_ms, 0);
    hak_store_relaxed(&hak_copy_mark->shown_until_ms, 0);
    hak_store_relaxed(&hak_copy_mark->state, COPY_UNNOTICED);
}

void hak_copy_mark_settled(void)
{
    /* release: partner is the acquire in hak_copy_notice */
    hak_store_release(&hak_copy_mark->state, COPY_SETTLED);
}
