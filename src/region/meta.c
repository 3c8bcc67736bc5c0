/* SPDX-License-Identifier: MIT */
#include "region/meta.h"

#include "base/bits.h"
#include "base/limits.h"
#include "os/lock.h"
#include "os/os.h"
#include "region/region.h"

static struct hak_lock meta_lock = HAK_LOCK_START_WITH(HAK_LOCK_META);
static size_t used_bytes;
static _Atomic size_t committed_bytes; /* of the present area */
static _Atomic size_t earlier_bytes;   /* of areas before it */

#define MORE_BYTES (16 * HAK_MIB)

/* Steps of an eighth, at least 64 KiB, at most 4 MiB. */
static bool grow(size_t needed_bytes)
{
    size_t committed = hak_load_relaxed(&committed_bytes);
    size_t step = hak_clamp(committed / 8, 64 * HAK_KIB, 4 * HAK_MIB);
    size_t end = hak_align_up(hak_most(needed_bytes, committed + step), 64 * HAK_KIB);
    end = hak_most(needed_bytes, hak_least(end, hak_region.meta_bytes));
    if (end > hak_region.meta_bytes ||
        !hak_os_commit(hak_region.meta_start + committed, end - committed))
        return false;
    hak_store_relaxed(&committed_bytes, end);
    return true;
}

/* Where the area was made small, another one follows it somewhere else. */
static bool extend(size_t bytes)
{
    size_t guard = hak_os_page_bytes();
    size_t more = hak_most(MORE_BYTES, hak_align_up(bytes, HAK_GRANULE_BYTES));
    unsigned char *start =
        hak_region.is_reserved ? NULL : hak_os_reserve_apart(guard + more + guard);
    if (start == NULL)
        return false;
    start += guard;
    hak_os_refuse_huge_pages(start, more);
    hak_counter_add(&earlier_bytes, hak_load_relaxed(&committed_bytes));
    /* In this order: whoever is stopped in between by a jump leaves an area that is full. */
    hak_region.meta_bytes = 0;
    hak_compiler_fence();
    hak_region.meta_start = start;
    used_bytes = 0;
    hak_store_relaxed(&committed_bytes, 0);
    hak_compiler_fence();
    hak_region.meta_bytes = more;
    return true;
}

static void *take_locked(size_t bytes)
{
    size_t end = used_bytes + hak_align_up(bytes, HAK_CACHE_LINE_BYTES);
    if (end > hak_region.meta_bytes && extend(bytes))
        end = hak_align_up(bytes, HAK_CACHE_LINE_BYTES);
    if (end > hak_load_relaxed(&committed_bytes) && !grow(end))
        return NULL;
    void *record = hak_region.meta_start + used_bytes;
    used_bytes = end;
    return record;
}

void *hak_meta_take(size_t bytes)
{
    hak_lock_take(&meta_lock);
    void *record = take_locked(bytes);
    hak_lock_give(&meta_lock);
    return record;
}

void *hak_meta_pool_take(struct meta_pool *pool, size_t bytes)
{
    hak_lock_take(&meta_lock);
    void *record = pool->first;
    if (record != NULL)
        pool->first = *(void **)record;
    else
        record = take_locked(bytes);
    if (record != NULL) {
        *(void **)record = NULL;
        hak_counter_add(&pool->taken_count, 1);
    }
    hak_lock_give(&meta_lock);
    return record;
}

void hak_meta_pool_give(struct meta_pool *pool, void *record)
{
    hak_lock_take(&meta_lock);
    *(void **)record = pool->first;
    pool->first = record;
    hak_counter_add(&pool->taken_count, -1ull);
    hak_lock_give(&meta_lock);
}

size_t hak_meta_bytes(void)
{
    return hak_load_relaxed(&earlier_bytes) + hak_load_relaxed(&committed_bytes);
}

size_t hak_meta_present_bytes(void)
{
    return hak_load_relaxed(&earlier_bytes) == 0 ? hak_load_relaxed(&committed_bytes) : 0;
}

void hak_meta_mend(void)
{
    if (hak_lock_is_left(&meta_lock))
        hak_lock_give(&meta_lock); /* each of its steps loses a record at most */
}

void hak_meta_lock(void)
{
    hak_lock_take(&meta_lock);
}

void hak_meta_unlock(void)
{
    hak_lock_give(&meta_lock);
}

void hak_meta_lock_reset(void)
{
    hak_lock_reset(&meta_lock);
}
