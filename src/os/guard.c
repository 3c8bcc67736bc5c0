/* SPDX-License-Identifier: MIT */
#include "os/guard.h"

#include "base/check.h"
#include "os/os.h"

#include <errno.h>
#include <sys/mman.h>

/* A guard splits one mapping in three; a quarter of all mappings may be spent. */
#define MAPPINGS_PER_GUARD 8

static _Atomic size_t raised_count;
static _Atomic size_t raised_most; /* 0: not asked yet */

static size_t budget(void)
{
    size_t most = hak_load_relaxed(&raised_most);
    if (HAK_UNLIKELY(most == 0)) {
        most = hak_os_mappings_most() / MAPPINGS_PER_GUARD + 1;
        hak_store_relaxed(&raised_most, most);
    }
    return most;
}

bool hak_guard_shut(void *start, size_t bytes)
{
    int saved = errno;
    int result = mprotect(start, bytes, PROT_NONE);
    errno = saved;
    hak_fetch_add_relaxed(&hak_os_counters.protect_count, 1);
    return result == 0;
}

bool hak_guard_raise(void *start, size_t bytes)
{
    if (hak_fetch_add_relaxed(&raised_count, 1) < budget() && hak_guard_shut(start, bytes))
        return true;
    hak_fetch_add_relaxed(&raised_count, -1ul);
    return false;
}

void hak_guard_lower(void *start, size_t bytes)
{
    int saved = errno;
    /* Its neighbours are usable or guards themselves: no mapping is split, so it cannot fail. */
    int result = mprotect(start, bytes, PROT_READ | PROT_WRITE);
    errno = saved;
    hak_require(result == 0, "the kernel does not lower a guard");
    hak_fetch_add_relaxed(&hak_os_counters.protect_count, 1);
    hak_fetch_add_relaxed(&raised_count, -1ul);
}

size_t hak_guard_count(void)
{
    return hak_load_relaxed(&raised_count);
}
