/* SPDX-License-Identifier: MIT */
#include "region/area.h"

#include "base/bits.h"
#include "base/limits.h"

/* No huge page is smaller, so none lies in a shorter area. */
#define HUGE_BYTES_LEAST (2 * HAK_MIB)

void hak_area_start(struct area *area, void *start, size_t room_bytes)
{
    area->start = start;
    area->room_bytes = room_bytes;
    area->tried_bytes = 0;
    hak_store_relaxed(&area->usable_bytes, 0);
}

/* What may be mapped without being counted is: changing its protection fails otherwise. */
static size_t settle(struct area *area)
{
    size_t usable = hak_load_relaxed(&area->usable_bytes);
    /* release: partners are the acquires of the area's users, which then find it accessible */
    if (HAK_UNLIKELY(area->tried_bytes != usable) &&
        hak_os_allow(area->start + usable, area->tried_bytes - usable))
        hak_store_release(&area->usable_bytes, usable = area->tried_bytes);
    area->tried_bytes = usable;
    return usable;
}

static void refuse_huge_pages(const struct area *area, size_t old_bytes, size_t new_bytes)
{
    size_t from = old_bytes < HUGE_BYTES_LEAST ? 0 : old_bytes;
    if (new_bytes >= HUGE_BYTES_LEAST)
        hak_os_refuse_huge_pages(area->start + from, new_bytes - from);
}

enum os_map hak_area_grow(struct area *area, size_t bytes, size_t step_bytes)
{
    if (bytes <= hak_load_relaxed(&area->usable_bytes))
        return OS_MAPPED;
    if (bytes > area->room_bytes)
        return OS_MAP_TAKEN;
    size_t usable = settle(area);
    if (bytes <= usable)
        return OS_MAPPED;
    size_t end = hak_least(hak_align_up(bytes, step_bytes), area->room_bytes);
    area->tried_bytes = end;
    hak_compiler_fence(); /* before the call: a jump may stop us behind it */
    enum os_map result = hak_os_map(area->start + usable, end - usable);
    if (result != OS_MAPPED) {
        area->tried_bytes = usable;
        return result;
    }
    refuse_huge_pages(area, usable, end);
    /* release: partners as in `settle` */
    hak_store_release(&area->usable_bytes, end);
    return OS_MAPPED;
}
