/* SPDX-License-Identifier: MIT */
#include "heap/supply.h"

#include "base/bits.h"
#include "base/check.h"
#include "conf/conf.h"
#include "heap/limit.h"
#include "heap/wait.h"
#include "misuse/harden.h"
#include "os/os.h"
#include "os/os_huge.h"
#include "policy/policy_table.h"
#include "region/huge_pace.h"
#include "region/huge_wish.h"
#include "region/mappings.h"
#include "region/meta.h"
#include "region/tag_map.h"
#include "span/span_heap.h"
#include "stats/event_log.h"

/* Other threads may be faster to what was added for us; so often we add more. */
#define TRIES 8
/* In a pool of so many superslabs one is added before the last so many granules are taken. */
#define AHEAD_SUPERSLABS 16
#define AHEAD_GRANULES 16
/* Of the granules of superslabs, what is touched at the start: two superslabs. */
#define TOUCHED_MOST 64

/* Under the growth lock. */
static struct huge_pace pace;

/* Whether superslabs are huge only where we ask for it one by one. */
static bool huge_pages_are_asked_for(void)
{
    return hak_conf_number(thp) == THP_AUTO && hak_os_huge_pages() == HUGE_ON_REQUEST;
}

/* Gives a wholly free superslab back to the spans; without memory for a record the pool keeps
 * it. */
static bool return_superslab(struct granule_range range)
{
    if (huge_pages_are_asked_for())
        hak_pool_end_huge(range.first);
    struct span *span = hak_span_attach(range);
    if (span != NULL)
        hak_span_give(span);
    else
        hak_pool_add(range.first, PARTITION_ORDINARY, false, PAGES_SMALL);
    return span != NULL;
}

void hak_supply_trim(void)
{
    struct granule_range spare;
    do
        spare = hak_pool_take_spare();
    while (spare.count != 0 && return_superslab(spare));
}

/* Whether a huge page would soon be filled: the process is no small one, and the class grows. What
 * of a block longer than a page will be touched is not known. It is held whole at once, and counts
 * already: that must be within the limits. */
static bool deserves_huge(uint32_t class_index, const struct slab_owner *owner)
{
    size_t slab_bytes = (size_t)hak_size_classes[class_index].granule_count << HAK_GRANULE_SHIFT;
    return hak_size_classes[class_index].block_bytes <= hak_policy_read(huge_block_bytes) &&
           hak_pool_superslab_count() >= hak_policy_read(huge_heap_superslabs) &&
           hak_load_relaxed(&owner->use[class_index].slabs) * slab_bytes >=
               hak_policy_read(huge_class_bytes) &&
           !hak_limit_is_passed();
}

/* Whether the kernel may back the superslab by a huge page, asked by us, by the user's option for
 * the whole window, or unasked. The setting is not read for the first superslabs of a process. */
static bool may_be_huge(uint32_t first, bool is_wished)
{
    bool is_first = (size_t)first << HAK_GRANULE_SHIFT < HAK_SMALL_PAGES_BYTES;
    switch (hak_conf_number(thp)) {
    case THP_OFF:
        return false;
    case THP_ON:
        return hak_os_huge_pages() != HUGE_NEVER;
    default:
        return (is_wished && hak_os_huge_pages() != HUGE_NEVER) ||
               (!is_first && hak_os_huge_pages() == HUGE_ALWAYS);
    }
}

/* Which superslabs serve the class. In hardened mode memory is used again by its own partition
 * only: what a dangling pointer into one partition leads to is never a block of the other. What is
 * sparse lies in superslabs that were never used. */
static enum hak_partition pool_partition(uint32_t class_index, const struct slab_owner *owner)
{
    if (HAK_UNLIKELY(owner->is_sparse))
        return PARTITION_LONG;
    return HAK_UNLIKELY(hak_harden_has(HARDEN_EXACT)) ? hak_class_partition(class_index)
                                                      : PARTITION_ORDINARY;
}

static struct granule_range take_superslab(enum hak_partition partition, bool *is_zero)
{
    *is_zero = true;
    if (HAK_UNLIKELY(partition != PARTITION_ORDINARY))
        return hak_span_fresh_superslab();
    struct span *span = hak_span_take(HAK_SUPERSLAB_GRANULES, HAK_SUPERSLAB_GRANULES, is_zero);
    if (span == NULL)
        return (struct granule_range){0, 0};
    struct granule_range range = hak_span_detach(span);
    if (!*is_zero)
        hak_huge_refuse(range);
    return range;
}

/* Records and tables count as held before they are used. */
static bool may_grow_ahead(void)
{
    return hak_policy_read(limit_bytes) == 0;
}

/* Tells the kernel what pages the superslab is to have; true: one huge page may back it. In `auto`
 * one that was not wished for is refused where huge pages come unasked: what of it is not filled
 * would be resident. */
static bool choose_pages(uint32_t first, bool is_wished, struct stat_block *stats)
{
    void *start = hak_granule_address(first);
    bool is_on = hak_conf_number(thp) == THP_ON;
    if (!may_be_huge(first, is_wished))
        return false;
    if (is_on ? !is_wished : !hak_mappings_admit_advice(first))
        return may_be_huge(first, false);
    if (!is_wished)
        return !hak_os_refuse_huge_pages(start, HAK_SUPERSLAB_BYTES);
    bool is_huge = hak_os_wish_huge_pages(start, HAK_SUPERSLAB_BYTES);
    hak_stat_add_shared(stats, huge_superslabs, is_huge);
    return is_huge;
}

/* What the superslab for a slab of the class is to be backed by. */
static enum huge_turn turn_of(uint32_t class_index, const struct slab_owner *owner, bool is_zero)
{
    if (!is_zero || owner->is_sparse)
        return HUGE_TURN_SMALL;
    if (hak_conf_number(thp) == THP_ON)
        return HUGE_TURN_UNTIMED;
    return deserves_huge(class_index, owner) ? hak_huge_turn(&pace) : HUGE_TURN_SMALL;
}

/* Touches the superslab, for which a huge page was asked, and notes how long that took. */
static void time_huge(uint32_t first, struct stat_block *stats)
{
    bool was_slow = hak_huge_is_slow(first);
    hak_huge_timed(&pace, was_slow);
    hak_stat_add_shared(stats, huge_slow, was_slow);
}

static bool add_superslab(uint32_t class_index, const struct slab_owner *owner,
                          struct stat_block *stats)
{
    bool is_zero;
    enum hak_partition partition = pool_partition(class_index, owner);
    struct granule_range range = take_superslab(partition, &is_zero);
    if (range.count == 0)
        return false;
    enum huge_turn turn = turn_of(class_index, owner, is_zero);
    bool is_wished = turn != HUGE_TURN_SMALL;
    bool is_huge = choose_pages(range.first, is_wished, stats);
    enum superslab_pages pages = is_huge ? PAGES_ASKED : PAGES_SMALL;
    if (is_huge && turn == HUGE_TURN_TIMED) {
        time_huge(range.first, stats);
        pages = PAGES_HUGE;
    }
    if (is_huge && is_wished)
        hak_event_log(huge_superslab, hak_size_classes[class_index].block_bytes);
    hak_event_log(fresh_superslab, hak_size_classes[class_index].block_bytes);
    hak_pool_add(range.first, partition, is_zero, pages);
    return true;
}

static void give_granules(uint32_t first, uint32_t count, uint32_t dirty_count)
{
    struct granule_range spare = hak_pool_give(first, count, dirty_count);
    if (spare.count != 0)
        return_superslab(spare);
}

/* They are taken one by one, so that none is left out, and given back as touched. */
size_t hak_supply_touch(size_t most_bytes)
{
    uint32_t firsts[TOUCHED_MOST], count = 0;
    size_t most = hak_least(most_bytes >> HAK_GRANULE_SHIFT, TOUCHED_MOST);
    struct pool_granules granules;
    while (count < most && (granules = hak_pool_take(1, 1, PARTITION_ORDINARY)).count != 0) {
        hak_os_touch(hak_granule_address(granules.first), HAK_GRANULE_BYTES);
        firsts[count++] = granules.first;
    }
    for (uint32_t i = 0; i < count; i++)
        give_granules(firsts[i], 1, 1);
    return (size_t)count << HAK_GRANULE_SHIFT;
}

static void count_stage(struct stat_block *stats, const struct pool_granules *granules)
{
    if (granules->is_fresh)
        hak_stat_add(stats, fresh_slabs, 1);
    else if (granules->is_warm)
        hak_stat_add(stats, recycled_slabs, 1);
    else
        hak_stat_add(stats, purged_slabs, 1);
}

void hak_supply_give_up(struct pool_granules *granules)
{
    if (granules->count != 0)
        give_granules(granules->first, granules->count, 0);
    *granules = HAK_NO_GRANULES;
}

struct slab *hak_supply_make(uint32_t class_index, struct pool_granules *granules,
                             struct slab_owner *owner, struct stat_block *stats)
{
    if (granules->count == 0)
        return NULL;
    struct slab *slab = hak_slab_create(class_index, granules->first, granules->is_zero, owner);
    if (slab == NULL) {
        hak_supply_give_up(granules);
        return NULL;
    }
    hak_tag_write(granules->first, granules->count, hak_supply_tag(slab, owner));
    hak_use_note_slab(owner->use, class_index, 1, 0);
    count_stage(stats, granules);
    *granules = HAK_NO_GRANULES;
    return slab;
}

/* Granules of a started superslab. */
static struct pool_granules take_granules(uint32_t class_index, const struct slab_owner *owner)
{
    return hak_pool_take(hak_size_classes[class_index].granule_count, owner->heap_id,
                         pool_partition(class_index, owner));
}

/* Whether they may add to what is held, so that the limits must be checked. */
HAK_INLINE bool are_more(const struct pool_granules *granules)
{
    return granules->count != 0 && !granules->is_warm;
}

/* Above the soft limit free memory must go back, which is not done inside a heap. */
struct slab *hak_supply_present(uint32_t class_index, struct slab_owner *owner,
                                struct stat_block *stats)
{
    struct pool_granules granules = take_granules(class_index, owner);
    if (are_more(&granules) && HAK_UNLIKELY(hak_limit_is_passed()))
        hak_supply_give_up(&granules);
    return hak_supply_make(class_index, &granules, owner, stats);
}

static void settle(struct pool_granules *granules)
{
    if (are_more(granules) && !hak_limit_settle())
        hak_supply_give_up(granules);
}

/* Granules of a superslab that is added if need be. Where a limit refuses memory, they are compared
 * with it before another thread takes some: two that hold more for a moment would both give up. */
static struct pool_granules add_and_take(uint32_t class_index, const struct slab_owner *owner,
                                         bool is_firm, struct stat_block *stats)
{
    size_t bytes = (size_t)hak_size_classes[class_index].granule_count << HAK_GRANULE_SHIFT;
    struct cache *cache = hak_wait_begin();
    hak_lock_take(&hak_region.growth_lock);
    hak_wait_end(cache);
    struct pool_granules granules = take_granules(class_index, owner);
    for (int i = 0; granules.count == 0 && i < TRIES; i++) {
        if (!hak_limit_admits(bytes) || !add_superslab(class_index, owner, stats))
            break;
        granules = take_granules(class_index, owner);
        granules.is_fresh = true;
    }
    if (HAK_UNLIKELY(is_firm))
        settle(&granules);
    hak_lock_give(&hak_region.growth_lock);
    return granules;
}

struct pool_granules hak_supply_bring(uint32_t class_index, const struct slab_owner *owner,
                                      struct stat_block *stats)
{
    bool is_firm = hak_policy_read(limit_bytes) != 0;
    struct pool_granules granules = HAK_NO_GRANULES;
    if (HAK_LIKELY(!is_firm))
        granules = take_granules(class_index, owner);
    if (granules.count == 0)
        granules = add_and_take(class_index, owner, is_firm, stats);
    if (HAK_LIKELY(!is_firm))
        settle(&granules);
    return granules;
}

void hak_supply_grow_records_ahead(void)
{
    if (may_grow_ahead())
        hak_meta_grow_ahead();
}

bool hak_supply_is_cold(uint32_t class_index, const struct slab_owner *owner)
{
    return hak_pool_warm_count() == 0 ||
           !hak_pool_has(hak_size_classes[class_index].granule_count,
                         pool_partition(class_index, owner), WISH_WARM);
}

bool hak_supply_is_dry(uint32_t class_index, const struct slab_owner *owner)
{
    return !hak_pool_has(hak_size_classes[class_index].granule_count,
                         pool_partition(class_index, owner), WISH_ANY);
}

bool hak_supply_is_low(uint32_t class_index, const struct slab_owner *owner)
{
    return HAK_UNLIKELY(hak_pool_free_count(pool_partition(class_index, owner)) < AHEAD_GRANULES) &&
           hak_pool_superslab_count() >= AHEAD_SUPERSLABS;
}

void hak_supply_grow_ahead(uint32_t class_index, const struct slab_owner *owner,
                           struct stat_block *stats)
{
    if (!hak_lock_try(&hak_region.growth_lock))
        return;
    if (hak_supply_is_low(class_index, owner) && may_grow_ahead())
        add_superslab(class_index, owner, stats);
    hak_lock_give(&hak_region.growth_lock);
}

void *hak_supply_large(struct span *cached, const struct large_request *request)
{
    if (cached == NULL && !hak_limit_admits(request->bytes))
        return NULL;
    void *block = hak_large_take_in(cached, request);
    if (block == NULL || hak_limit_settle())
        return block;
    hak_large_give(block);
    hak_limit_settle(); /* others that had to purge may have looked for it in vain */
    return NULL;
}

void hak_supply_retire(struct slab *slab)
{
    hak_assert(slab->used == 0 && hak_load_relaxed(&slab->remote_count) == 0);
    uint32_t first = hak_granule_of((void *)slab->start);
    uint32_t count = slab->granule_count;
    size_t guard_bytes = slab->start % HAK_GRANULE_BYTES; /* slab/shield.h */
    size_t touched_bytes = guard_bytes + (size_t)slab->bump * slab->block_bytes;
    uint32_t dirty_count =
        (uint32_t)(hak_align_up(touched_bytes, HAK_GRANULE_BYTES) >> HAK_GRANULE_SHIFT);
    hak_tag_write(first, count, HAK_TAG_NONE);
    hak_use_note_slab(hak_load_relaxed(&slab->owner)->use, slab->class_index, -1, 0);
    if (HAK_LIKELY(hak_slab_destroy(slab)))
        give_granules(first, count, dirty_count);
    else
        hak_os_purge(hak_granule_address(first), (size_t)count << HAK_GRANULE_SHIFT);
}
