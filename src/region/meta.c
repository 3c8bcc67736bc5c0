/* SPDX-License-Identifier: MIT */
#include "region/meta.h"

#include "base/bits.h"
#include "base/limits.h"
#include "os/claim.h"
#include "os/lock.h"
#include "os/os.h"
#include "region/region.h"

struct hak_lock hak_meta_lock = HAK_LOCK_START_WITH(HAK_LOCK_META);
struct hak_lock hak_meta_growth_lock = HAK_LOCK_START_WITH(HAK_LOCK_META_GROWTH);
static _Atomic size_t used_bytes;    /* changed under the first; a hint without it */
static _Atomic size_t earlier_bytes; /* of areas before it */
static _Atomic bool keeps_reserve;   /* set once */
static struct meta_pool for_good;    /* of records that are not given back */

#define MORE_BYTES (16 * HAK_MIB)
#define STEP_LEAST (64 * HAK_KIB)
/* So often what a thread has mapped may go to others. */
#define TRIES 4

static size_t wished_step(size_t usable)
{
    return hak_clamp(usable / 8, STEP_LEAST, 4 * HAK_MIB);
}

static enum os_map grow_locked(size_t needed_bytes)
{
    struct area *area = &hak_region.meta;
    size_t usable = hak_load_relaxed(&area->usable_bytes);
    if (needed_bytes <= usable) /* another thread has been here meanwhile */
        return OS_MAPPED;
    size_t wished = hak_least(usable + wished_step(usable), area->room_bytes);
    if (wished > needed_bytes && hak_area_grow(area, wished, STEP_LEAST) == OS_MAPPED)
        return OS_MAPPED;
    return hak_area_grow(area, needed_bytes, hak_os_page_bytes());
}

/* Steps of an eighth, at least 64 KiB, at most 4 MiB; what is needed, where that cannot be had.
 * acquire: partner is the area's release; others may grow it without hak_meta_lock */
static enum os_map grow(size_t needed_bytes)
{
    if (needed_bytes <= hak_load_acquire(&hak_region.meta.usable_bytes))
        return OS_MAPPED;
    hak_lock_take(&hak_meta_growth_lock);
    enum os_map result = grow_locked(needed_bytes);
    hak_lock_give(&hak_meta_growth_lock);
    return result;
}

static size_t half_step(void)
{
    return wished_step(hak_load_relaxed(&hak_region.meta.usable_bytes)) / 2;
}

static size_t reserve(void)
{
    return hak_load_relaxed(&keeps_reserve) ? half_step() : 0;
}

void hak_meta_keep_reserve(void)
{
    hak_store_relaxed(&keeps_reserve, true);
}

/* used_bytes may be of an area that another one follows by now: then this one grows too early. */
void hak_meta_grow_ahead(void)
{
    size_t least = hak_load_relaxed(&used_bytes) + half_step();
    if (least <= hak_load_relaxed(&hak_region.meta.usable_bytes) ||
        !hak_lock_try(&hak_meta_growth_lock))
        return;
    grow_locked(least);
    hak_lock_give(&hak_meta_growth_lock);
}

/* Where the area is full, or others have mapped something in it, another one follows it somewhere
 * else, with so many bytes mapped. */
static bool extend(size_t bytes)
{
    size_t guard = hak_os_page_bytes(), more = MORE_BYTES;
    struct os_claim claim = {.front_bytes = guard, .bytes = guard + more + guard};
    if (bytes > more || !hak_os_claim(&claim, ZONE_MORE_RECORDS))
        return false;
    hak_os_claim_open(&claim);
    struct area next;
    hak_area_start(&next, claim.start + guard, more);
    if (hak_area_grow(&next, bytes, STEP_LEAST) != OS_MAPPED) {
        claim.is_whole = false; /* what lies between its ends is others' by now */
        hak_os_claim_drop(&claim);
        return false;
    }
    hak_lock_take(&hak_meta_growth_lock);
    hak_counter_add(&earlier_bytes, hak_load_relaxed(&hak_region.meta.usable_bytes));
    /* In this order: a jump out of here, or a copy, leaves an area that is full. */
    hak_region.meta.room_bytes = 0;
    hak_compiler_fence();
    hak_store_relaxed(&hak_region.meta.usable_bytes, 0);
    hak_compiler_fence();
    hak_area_start(&hak_region.meta, next.start, 0);
    hak_store_relaxed(&used_bytes, 0);
    hak_compiler_fence();
    hak_region.meta.tried_bytes = next.tried_bytes;
    hak_store_relaxed(&hak_region.meta.usable_bytes, hak_load_relaxed(&next.usable_bytes));
    hak_compiler_fence();
    hak_region.meta.room_bytes = more;
    hak_lock_give(&hak_meta_growth_lock);
    return true;
}

/* A record that costs no system call, and leaves so much after it if it is a new one. */
static void *take_mapped(struct meta_pool *pool, size_t bytes, size_t left_bytes)
{
    void *record = pool->first;
    if (record != NULL) {
        pool->first = *(void **)record;
        return record;
    }
    /* acquire: partner is the area's release, as in `grow` */
    size_t used = hak_load_relaxed(&used_bytes);
    if (used + bytes + left_bytes > hak_load_acquire(&hak_region.meta.usable_bytes))
        return NULL;
    hak_counter_add(&used_bytes, bytes);
    return hak_region.meta.start + used;
}

/* The area is full, or the kernel refuses memory: the reserve serves all. What was needed may have
 * been of an area that another one follows by now. */
static void *take_last(struct meta_pool *pool, size_t bytes, size_t left_bytes, enum os_map result)
{
    size_t wished = bytes + left_bytes;
    if (result == OS_MAP_TAKEN && grow(hak_load_relaxed(&used_bytes) + wished) == OS_MAP_TAKEN)
        extend(wished);
    void *record = take_mapped(pool, bytes, 0);
    if (record == NULL && grow(hak_load_relaxed(&used_bytes) + bytes) == OS_MAPPED)
        record = take_mapped(pool, bytes, 0);
    return record;
}

/* Under the lock, which is not held while memory is mapped: others, who find a record, do not wait
 * for the kernel. They may take what this thread has mapped; then it maps more. */
static void *take_locked(struct meta_pool *pool, size_t bytes, size_t left_bytes)
{
    void *record = take_mapped(pool, bytes, left_bytes);
    enum os_map result = OS_MAPPED;
    for (int i = 0; record == NULL && result == OS_MAPPED && i < TRIES; i++) {
        size_t needed = hak_load_relaxed(&used_bytes) + bytes + left_bytes;
        hak_lock_give(&hak_meta_lock);
        result = grow(needed);
        hak_lock_take(&hak_meta_lock);
        record = take_mapped(pool, bytes, left_bytes);
    }
    return record != NULL ? record : take_last(pool, bytes, left_bytes, result);
}

static void *take(struct meta_pool *pool, size_t bytes, size_t left_bytes)
{
    bytes = hak_align_up(bytes, HAK_CACHE_LINE_BYTES);
    hak_lock_take(&hak_meta_lock);
    void *record = take_locked(pool, bytes, left_bytes);
    if (record != NULL)
        hak_counter_add(&pool->taken_count, 1);
    hak_lock_give(&hak_meta_lock);
    if (record != NULL)
        *(void **)record = NULL; /* the pool's link; a new page is touched without the lock */
    return record;
}

void hak_meta_make_room(size_t bytes)
{
    grow(hak_load_relaxed(&used_bytes) + bytes + reserve());
}

void *hak_meta_take(size_t bytes)
{
    return take(&for_good, bytes, reserve());
}

void *hak_meta_pool_take(struct meta_pool *pool, size_t bytes)
{
    return take(pool, bytes, reserve());
}

void *hak_meta_pool_take_reserved(struct meta_pool *pool, size_t bytes)
{
    return take(pool, bytes, 0);
}

void hak_meta_pool_give(struct meta_pool *pool, void *record)
{
    hak_lock_take(&hak_meta_lock);
    *(void **)record = pool->first;
    pool->first = record;
    hak_counter_add(&pool->taken_count, -1ull);
    hak_lock_give(&hak_meta_lock);
}

void hak_meta_prewarm(size_t bytes)
{
    const struct area *area = &hak_region.meta;
    hak_lock_take(&hak_meta_lock);
    size_t used = hak_load_relaxed(&used_bytes);
    unsigned char *next = area->start + used;
    bool is_there = grow(used + bytes) == OS_MAPPED;
    hak_lock_give(&hak_meta_lock);
    if (is_there)
        hak_os_touch(next, bytes);
}

size_t hak_meta_bytes(void)
{
    return hak_load_relaxed(&earlier_bytes) + hak_load_relaxed(&hak_region.meta.usable_bytes);
}

size_t hak_meta_present_bytes(void)
{
    return hak_load_relaxed(&earlier_bytes) == 0 ? hak_load_relaxed(&hak_region.meta.usable_bytes)
                                                 : 0;
}
