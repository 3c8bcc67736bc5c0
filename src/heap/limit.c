/* SPDX-License-Identifier: MIT */
#include "heap/limit.h"

#include "base/bits.h"
#include "heap/supply.h"
#include "misuse/mark.h"
#include "region/meta.h"
#include "region/region.h"
#include "slab/superslab_pool.h"
#include "span/span_heap.h"
#include "span/span_purge.h"

_Atomic size_t hak_limit_group_bytes;
static _Atomic size_t growing_bytes; /* what blocks are about to grow by */

static size_t limit(void)
{
    size_t bytes = hak_policy_read(limit_bytes);
    return bytes == 0 ? SIZE_MAX : bytes;
}

size_t hak_limit_soft_bytes(void)
{
    size_t bytes = hak_policy_read(soft_limit_bytes);
    if (bytes == 0)
        bytes = hak_load_relaxed(&hak_limit_group_bytes);
    return hak_least(bytes == 0 ? SIZE_MAX : bytes, limit());
}

static size_t pool_warm_bytes(void)
{
    return (size_t)hak_pool_warm_count() << HAK_GRANULE_SHIFT;
}

/* In hardened mode marks count as if all were used: they become usable when later blocks need
 * them. */
static size_t with_marks(size_t bytes)
{
    return bytes + hak_least(hak_mark_reserved_bytes(), hak_mark_bytes_for(bytes));
}

size_t hak_held_bytes(void)
{
    /* What grows first: once that has ended, the block's memory counts. acquire: partner is the
     * release in hak_limit_end_growth. */
    size_t growing = hak_load_acquire(&growing_bytes);
    size_t pool_free = (size_t)hak_pool_free_count_all() << HAK_GRANULE_SHIFT;
    size_t clean = hak_excess(pool_free, pool_warm_bytes()) + hak_span_lost_bytes();
    clean += hak_span_clean_bytes();
    /* What is known last: spans that are clean are known, and what is added meanwhile counts. */
    size_t held = hak_excess(hak_span_known_bytes(), clean);
    return with_marks(held + growing) + hak_meta_bytes() + hak_region_table_bytes();
}

size_t hak_limit_warm_bytes(void)
{
    return hak_span_warm_bytes() + pool_warm_bytes();
}

bool hak_limit_admits_slow(size_t more_bytes)
{
    size_t firm = hak_excess(hak_held_bytes(), with_marks(hak_limit_warm_bytes()));
    size_t room = hak_excess(limit(), firm);
    return more_bytes <= room && with_marks(more_bytes) <= room;
}

bool hak_limit_is_passed(void)
{
    return hak_limit_is_set() && hak_held_bytes() > hak_limit_soft_bytes();
}

/* Gives back at least `excess_bytes` of what is free, if there is so much. While others move spans
 * their sum may be too large, once. */
static void purge(size_t excess_bytes)
{
    size_t bytes = 0;
    for (int round = 0; round < 2 && bytes < excess_bytes; round++) {
        size_t keep = hak_excess(hak_span_warm_bytes(), excess_bytes - bytes);
        bytes += hak_span_purge(UINT64_MAX, keep, UINT32_MAX);
    }
    uint32_t left = hak_pool_superslab_count();
    for (; bytes < excess_bytes && left > 0 && hak_pool_has_warm(UINT64_MAX - 1); left--)
        bytes += hak_pool_purge(UINT64_MAX, 1);
}

bool hak_limit_settle_slow(void)
{
    size_t most = limit();
    /* Of two threads that each took something before they look, one sees both: the partner is this
     * fence in the other one. */
    hak_fence_full();
    size_t held = hak_held_bytes();
    size_t soft = hak_limit_soft_bytes();
    if (HAK_LIKELY(held <= soft))
        return true;
    if (held > most)
        hak_lock_take(&hak_region.purge_lock); /* what others purge counts until it is back */
    else if (!hak_lock_try(&hak_region.purge_lock))
        return true;
    held = hak_held_bytes();
    if (held > soft)
        purge(held - soft);
    hak_lock_give(&hak_region.purge_lock);
    return hak_held_bytes() <= most;
}

bool hak_limit_begin_growth(size_t more_bytes)
{
    if (more_bytes == 0) /* what shrinks is welcome above the limit, too */
        return true;
    if (!hak_limit_admits(more_bytes))
        return false;
    hak_fetch_add_relaxed(&growing_bytes, more_bytes);
    if (hak_limit_settle())
        return true;
    hak_limit_end_growth(more_bytes);
    return false;
}

void hak_limit_end_growth(size_t more_bytes)
{
    /* acq_rel: partner is the acquire in hak_held_bytes */
    hak_fetch_sub_acq_rel(&growing_bytes, more_bytes);
}
