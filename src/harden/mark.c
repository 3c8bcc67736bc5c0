/* SPDX-License-Identifier: MIT */
#include "harden/mark.h"

#include "base/bits.h"
#include "os/os.h"

#include <string.h>

/* The marks become usable in steps: of 4 MiB of the window at least. */
#define STEP_BYTES (4 * HAK_MIB)

hak_static_assert(MARK_BYTES_AT + MARK_BYTES_BITS == MARK_GUARDED_AT &&
                      HAK_WINDOW_BYTES_MAX >> MARK_BYTES_BITS == 0,
                  "a mark has room for all sizes");

_Atomic uint64_t *hak_marks;
_Atomic size_t hak_mark_covered_bytes;

bool hak_mark_start(void)
{
    size_t bytes = hak_align_up(hak_mark_bytes_for(hak_region.window_bytes), HAK_GRANULE_BYTES);
    char *start = hak_os_reserve_apart(HAK_GRANULE_BYTES + bytes + HAK_GRANULE_BYTES);
    if (start == NULL)
        return false;
    hak_marks = (_Atomic uint64_t *)(void *)(start + HAK_GRANULE_BYTES);
    hak_os_refuse_huge_pages((void *)hak_marks, bytes);
    return true;
}

static void purge_marks(size_t granule, size_t count)
{
    size_t page = hak_os_page_bytes(), covered = hak_load_relaxed(&hak_mark_covered_bytes);
    size_t end_bytes = hak_least((granule + count) << HAK_GRANULE_SHIFT, covered);
    size_t start = hak_align_up(hak_mark_bytes_for(granule << HAK_GRANULE_SHIFT), page);
    size_t end = hak_align_down(hak_mark_bytes_for(end_bytes), page);
    if (start < end)
        hak_os_purge((char *)hak_marks + start, end - start);
}

bool hak_mark_purge(size_t granule, size_t count)
{
    if (!hak_os_purge(hak_granule_address(granule), count << HAK_GRANULE_SHIFT))
        return false;
    purge_marks(granule, count);
    return true;
}

size_t hak_mark_bytes(void)
{
    return hak_mark_bytes_for(hak_load_relaxed(&hak_mark_covered_bytes));
}

size_t hak_mark_reserved_bytes(void)
{
    return hak_marks == NULL ? 0 : hak_mark_bytes_for(hak_region.window_bytes);
}

bool hak_mark_is_freed_at(const void *block)
{
    _Atomic uint64_t *mark = hak_mark_at(block);
    uint32_t state = mark == NULL ? MARK_NONE : hak_load_relaxed(mark) & 3;
    return state == MARK_FREED || state == MARK_CLEARED;
}

/* Two threads may commit the same steps at the same time: the second changes nothing. */
static bool cover(size_t end_bytes)
{
    size_t covered = hak_load_relaxed(&hak_mark_covered_bytes);
    if (HAK_LIKELY(end_bytes <= covered))
        return true;
    size_t end = hak_least(hak_align_up(end_bytes, STEP_BYTES), hak_region.window_bytes);
    if (!hak_os_commit((char *)hak_marks + hak_mark_bytes_for(covered),
                       hak_mark_bytes_for(end - covered)))
        return false;
    while (covered < end)
        /* release: partner is the acquire in hak_mark_at */
        if (hak_cas_release(&hak_mark_covered_bytes, &covered, end))
            break;
    return true;
}

bool hak_mark_cover(size_t granule, size_t count)
{
    return cover((granule + count) << HAK_GRANULE_SHIFT);
}

bool hak_mark_clear(size_t granule, size_t count)
{
    if (!hak_mark_cover(granule, count))
        return false;
    memset((char *)hak_marks + hak_mark_bytes_for(granule << HAK_GRANULE_SHIFT), 0,
           hak_mark_bytes_for(count << HAK_GRANULE_SHIFT));
    return true;
}
