/* SPDX-License-Identifier: MIT */
#include "misuse/mark.h"

#include "base/bits.h"
#include "os/os.h"

#include <string.h>

/* The marks become usable in steps: of 4 MiB of the window at least. */
#define STEP_BYTES (4 * HAK_MIB)

hak_static_assert(MARK_BYTES_AT + MARK_BYTES_BITS == MARK_GUARDED_AT &&
                      HAK_WINDOW_BYTES_MAX >> MARK_BYTES_BITS == 0,
                  "a mark has room for all sizes");

hak_static_assert(sizeof(uint64_t) * HAK_MARKS_SHARE == 1u << HAK_MARK_SHIFT,
                  "the region has room for all marks");

_Atomic uint64_t *hak_marks;
HAK_AT_HAND _Atomic size_t hak_mark_covered_bytes;

void hak_mark_start(void)
{
    hak_marks = (_Atomic uint64_t *)(void *)hak_region.marks.start;
}

void hak_mark_forget(size_t granule, size_t count)
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
    hak_mark_forget(granule, count);
    return true;
}

size_t hak_mark_bytes(void)
{
    return hak_mark_bytes_for(hak_load_relaxed(&hak_mark_covered_bytes));
}

size_t hak_mark_reserved_bytes(void)
{
    return hak_marks == NULL ? 0 : hak_region.marks.room_bytes;
}

bool hak_mark_is_freed_at(const void *block)
{
    _Atomic uint64_t *mark = hak_mark_at(block);
    uint32_t state = mark == NULL ? MARK_NONE : hak_load_relaxed(mark) & 3;
    return state == MARK_FREED || state == MARK_CLEARED;
}

static bool cover(size_t end_bytes)
{
    /* acquire: partner is the release below; the marks were mapped before it */
    if (HAK_LIKELY(end_bytes <= hak_load_acquire(&hak_mark_covered_bytes)))
        return true;
    hak_lock_take(&hak_region.lock);
    size_t end = hak_least(hak_align_up(end_bytes, STEP_BYTES), hak_region.window_bytes);
    enum os_map result =
        hak_area_grow(&hak_region.marks, hak_mark_bytes_for(end), hak_mark_bytes_for(STEP_BYTES));
    if (result == OS_MAPPED && end > hak_load_relaxed(&hak_mark_covered_bytes))
        /* release: partner is the acquire in hak_mark_at and above */
        hak_store_release(&hak_mark_covered_bytes, end);
    hak_lock_give(&hak_region.lock);
    return result == OS_MAPPED;
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
