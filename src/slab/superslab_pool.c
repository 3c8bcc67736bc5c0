/* SPDX-License-Identifier: MIT */
#include "slab/superslab_pool.h"

#include "base/bits.h"
#include "base/check.h"
#include "misuse/harden.h"
#include "misuse/mark.h"
#include "os/os.h"
#include "policy/policy_table.h"
#include "region/mappings.h"
#include "region/tag_map.h"
#include "stats/counters.h"

#define GROUP_GRANULES 16u
#define ALL_GRANULES ((uint32_t)((1ull << HAK_SUPERSLAB_GRANULES) - 1))
/* How many superslabs of one list are tried for a run of granules. */
#define TRIES_PER_LIST 8

/* The superslabs of a partition. */
struct superslab_lists {
    struct list_link by_free[HAK_SUPERSLAB_GRANULES + 1];
    uint64_t in_use; /* bit n: by_free[n] is not empty */
};

struct superslab_pool {
    struct superslab_lists lists[PARTITION_COUNT];
    struct list_link warm;
    uint32_t epoch; /* how often the lists were given up */
    _Atomic uint64_t warm_oldest_ms;
    struct keep_log keep; /* how soon granules come back */
    bool is_started;
};
struct pool_counts hak_pool_counts;
struct hak_lock hak_pool_lock = HAK_LOCK_START_WITH(HAK_LOCK_DEPOT);
static struct superslab_pool pool;

hak_static_assert(sizeof(struct superslab) == HAK_SUPERSLAB_RECORD_BYTES,
                  "the region reserves this much for each superslab");

static struct superslab *superslab_of(uint32_t granule)
{
    return (struct superslab *)(void *)hak_region.superslab_records +
           granule / HAK_SUPERSLAB_GRANULES;
}

static uint32_t first_granule_of(const struct superslab *superslab)
{
    ptrdiff_t index = superslab - (struct superslab *)(void *)hak_region.superslab_records;
    return (uint32_t)index * HAK_SUPERSLAB_GRANULES;
}

/* Free granules that may be resident: used ones, or all of a huge page. */
static uint32_t warm_mask(const struct superslab *superslab)
{
    return superslab->pages == PAGES_HUGE ? superslab->free : superslab->free & superslab->dirty;
}

static void start_once(void)
{
    if (pool.is_started)
        return;
    for (int partition = 0; partition < PARTITION_COUNT; partition++)
        for (uint32_t i = 0; i <= HAK_SUPERSLAB_GRANULES; i++)
            hak_list_start(&pool.lists[partition].by_free[i]);
    hak_list_start(&pool.warm);
    pool.is_started = true;
}

static void link_superslab(struct superslab *superslab)
{
    struct superslab_lists *lists = &pool.lists[superslab->partition];
    uint32_t free_count = hak_bit_count(superslab->free);
    hak_list_insert_first(&lists->by_free[free_count], &superslab->link);
    lists->in_use |= 1ull << free_count;
    hak_counter_add(&hak_pool_counts.warm, hak_bit_count(warm_mask(superslab)));
    hak_counter_add(&hak_pool_counts.free[superslab->partition], free_count);
    if (superslab->pages == PAGES_HUGE) {
        hak_counter_add(&hak_pool_counts.huge, 1);
        hak_counter_add(&hak_pool_counts.untouched,
                        hak_bit_count(superslab->free & ~superslab->dirty));
    }
}

/* A superslab whose lists were abandoned is new to the pool, with nothing free. */
static void renew(struct superslab *superslab)
{
    if (HAK_LIKELY(superslab->epoch == pool.epoch))
        return;
    superslab->epoch = pool.epoch;
    superslab->free = 0;
    superslab->link = (struct list_link){NULL, NULL};
    superslab->warm_link = (struct list_link){NULL, NULL};
    link_superslab(superslab);
    hak_counter_add(&hak_pool_counts.superslab, 1);
}

static void unlink_superslab(struct superslab *superslab)
{
    renew(superslab);
    struct superslab_lists *lists = &pool.lists[superslab->partition];
    uint32_t free_count = hak_bit_count(superslab->free);
    hak_list_remove(&superslab->link);
    if (hak_list_is_empty(&lists->by_free[free_count]))
        lists->in_use &= ~(1ull << free_count);
    hak_counter_add(&hak_pool_counts.warm, -hak_bit_count(warm_mask(superslab)));
    hak_counter_add(&hak_pool_counts.free[superslab->partition], -free_count);
    if (superslab->pages == PAGES_HUGE) {
        hak_counter_add(&hak_pool_counts.huge, -1u);
        hak_counter_add(&hak_pool_counts.untouched,
                        -hak_bit_count(superslab->free & ~superslab->dirty));
    }
}

/* Keeps the warm list true after `superslab` changed; `is_news` when a granule became free. */
static void note_warm(struct superslab *superslab, bool is_news)
{
    bool was_linked = hak_list_is_linked(&superslab->warm_link);
    if (was_linked && (is_news || warm_mask(superslab) == 0)) {
        hak_list_remove(&superslab->warm_link);
        was_linked = false;
    }
    if (!was_linked && warm_mask(superslab) != 0) {
        superslab->warm_since_ms = hak_os_clock_ms();
        hak_list_insert_last(&pool.warm, &superslab->warm_link);
    }
    struct list_link *oldest = pool.warm.next;
    hak_store_relaxed(&pool.warm_oldest_ms,
                      oldest == &pool.warm
                          ? UINT64_MAX
                          : hak_list_element(oldest, struct superslab, warm_link)->warm_since_ms);
}

/* Bit i is set where `count` granules of `mask` begin at i, a multiple of count. */
static uint32_t runs_in(uint32_t mask, uint32_t count)
{
    for (uint32_t width = 1; width < count; width *= 2)
        mask &= mask >> width;
    /* A number of ones spaced `count` apart. */
    uint64_t aligned = ~0ull / hak_bit_low_mask(count);
    return mask & (uint32_t)aligned;
}

/* Where in `superslab` to take `count` granules from; HAK_SUPERSLAB_GRANULES when there is no such
 * run. Tag words of one cache
 * line (a group of 16) are kept to one heap where that is possible. */
static uint32_t choose(const struct superslab *superslab, uint32_t count, uint32_t heap_id,
                       enum pool_wish wish)
{
    uint32_t runs = runs_in(wish == WISH_WARM ? warm_mask(superslab) : superslab->free, count);
    if (wish == WISH_BEGUN)
        runs &= warm_mask(superslab);
    if (runs == 0)
        return HAK_SUPERSLAB_GRANULES;
    uint32_t mine = 0;
    for (uint32_t group = 0; group < 2; group++)
        if (superslab->group_heap[group] == heap_id || superslab->group_heap[group] == 0)
            mine |= (uint32_t)hak_bit_low_mask(GROUP_GRANULES) << group * GROUP_GRANULES;
    return hak_bit_lowest(runs & mine ? runs & mine : runs);
}

/* Notes for the keep time how long these granules were free; `idle_since_ms` is of warm ones. */
static void note_taken(const struct pool_granules *granules, uint64_t idle_since_ms)
{
    uint64_t now_ms = hak_os_clock_ms();
    struct keep_ghost ghost;
    if (granules->is_warm)
        hak_keep_came_back(&pool.keep, granules->count, now_ms - idle_since_ms,
                           hak_policy_read(pool_episodes));
    else if (hak_keep_missed(&pool.keep, granules->count, now_ms, hak_policy_read(pool_episodes),
                             &ghost))
        hak_counter_add(&hak_stat_globals.granules_missed_bytes,
                        (uint64_t)granules->count << HAK_GRANULE_SHIFT);
}

uint64_t hak_pool_keep_ms(void)
{
    return hak_keep_ms(&pool.keep);
}

void hak_pool_learned(struct keep_evidence *seen)
{
    hak_lock_take(&hak_pool_lock);
    hak_keep_read(&pool.keep, seen);
    hak_lock_give(&hak_pool_lock);
}

bool hak_pool_begin(const struct keep_evidence *seen)
{
    hak_lock_take(&hak_pool_lock);
    bool has_begun = hak_keep_begin(&pool.keep, seen);
    hak_lock_give(&hak_pool_lock);
    return has_begun;
}

static struct pool_granules take_from(struct superslab *superslab, uint32_t at, uint32_t count,
                                      uint32_t heap_id)
{
    uint32_t taken = (uint32_t)hak_bit_low_mask(count) << at;
    struct pool_granules granules = {
        .first = first_granule_of(superslab) + at,
        .count = count,
        .is_zero = (superslab->dirty & taken) == 0,
        .is_warm = (superslab->dirty & taken) != 0,
        .is_fresh = superslab->free == ALL_GRANULES && superslab->dirty == 0,
    };
    note_taken(&granules, superslab->warm_since_ms);
    unlink_superslab(superslab);
    superslab->free &= ~taken;
    if (superslab->pages == PAGES_ASKED)
        superslab->pages = PAGES_HUGE;
    superslab->group_heap[at / GROUP_GRANULES] = heap_id;
    link_superslab(superslab);
    note_warm(superslab, false);
    return granules;
}

/* Looks through the superslabs of the partition, fullest first; NULL: none has such granules. *at:
 * where. */
static struct superslab *find(struct superslab_lists *lists, uint32_t count, uint32_t heap_id,
                              enum pool_wish wish, uint32_t *at)
{
    uint64_t in_use = lists->in_use & ~hak_bit_low_mask(count);
    for (; in_use != 0; in_use &= in_use - 1) {
        struct list_link *head = &lists->by_free[hak_bit_lowest(in_use)];
        int tries = TRIES_PER_LIST;
        for (struct list_link *i = head->next; i != head && tries-- > 0; i = i->next) {
            struct superslab *superslab = hak_list_element(i, struct superslab, link);
            *at = choose(superslab, count, heap_id, wish);
            if (*at < HAK_SUPERSLAB_GRANULES)
                return superslab;
        }
    }
    return NULL;
}

struct pool_granules hak_pool_take(uint32_t count, uint32_t heap_id, enum hak_partition partition)
{
    struct superslab *superslab = NULL;
    uint32_t at;
    hak_lock_take(&hak_pool_lock);
    bool has_warm = hak_load_relaxed(&hak_pool_counts.warm) != 0;
    for (int wish = has_warm ? WISH_WARM : WISH_ANY; wish < WISH_COUNT && superslab == NULL; wish++)
        superslab = find(&pool.lists[partition], count, heap_id, (enum pool_wish)wish, &at);
    struct pool_granules granules =
        superslab == NULL ? HAK_NO_GRANULES : take_from(superslab, at, count, heap_id);
    hak_lock_give(&hak_pool_lock);
    return granules;
}

bool hak_pool_has(uint32_t count, enum hak_partition partition, enum pool_wish wish)
{
    uint32_t at;
    hak_lock_take(&hak_pool_lock);
    bool has = find(&pool.lists[partition], count, 0, wish, &at) != NULL;
    hak_lock_give(&hak_pool_lock);
    return has;
}

void hak_pool_add(uint32_t first_granule, enum hak_partition partition, bool is_zero,
                  enum superslab_pages pages)
{
    struct superslab *superslab = superslab_of(first_granule);
    hak_assert(first_granule % HAK_SUPERSLAB_GRANULES == 0);
    hak_lock_take(&hak_pool_lock);
    start_once();
    superslab->epoch = pool.epoch;
    superslab->link = (struct list_link){NULL, NULL};
    superslab->warm_link = (struct list_link){NULL, NULL};
    superslab->free = ALL_GRANULES;
    superslab->dirty = is_zero ? 0 : ALL_GRANULES;
    superslab->pages = (uint16_t)pages;
    superslab->partition = (uint16_t)partition;
    superslab->group_heap[0] = 0;
    superslab->group_heap[1] = 0;
    link_superslab(superslab);
    note_warm(superslab, true);
    hak_counter_add(&hak_pool_counts.superslab, 1);
    hak_lock_give(&hak_pool_lock);
}

/* Takes a wholly free superslab out of the pool. */
static struct granule_range remove_superslab(struct superslab *superslab)
{
    unlink_superslab(superslab);
    superslab->free = 0;
    note_warm(superslab, false);
    hak_counter_add(&hak_pool_counts.superslab, -1u);
    return (struct granule_range){first_granule_of(superslab), HAK_SUPERSLAB_GRANULES};
}

struct granule_range hak_pool_give(uint32_t first_granule, uint32_t count, uint32_t dirty_count)
{
    struct granule_range spare = {0, 0};
    struct superslab *superslab = superslab_of(first_granule);
    uint32_t at = first_granule % HAK_SUPERSLAB_GRANULES;
    hak_lock_take(&hak_pool_lock);
    hak_assert((superslab->free & (uint32_t)hak_bit_low_mask(count) << at) == 0);
    unlink_superslab(superslab);
    superslab->free |= (uint32_t)hak_bit_low_mask(count) << at;
    /* In a huge page untouched granules are resident, too. */
    uint32_t dirty = superslab->pages == PAGES_BROKEN ? count : dirty_count;
    superslab->dirty |= (uint32_t)hak_bit_low_mask(dirty) << at;
    struct superslab_lists *lists = &pool.lists[superslab->partition];
    bool may_leave =
        (superslab->partition == PARTITION_ORDINARY || !hak_harden_has(HARDEN_EXACT)) &&
        !hak_list_is_empty(&lists->by_free[HAK_SUPERSLAB_GRANULES]);
    link_superslab(superslab);
    note_warm(superslab, true);
    if (superslab->free == ALL_GRANULES && may_leave)
        spare = remove_superslab(superslab);
    hak_lock_give(&hak_pool_lock);
    return spare;
}

struct granule_range hak_pool_take_spare(void)
{
    struct granule_range spare = {0, 0};
    hak_lock_take(&hak_pool_lock);
    start_once();
    struct list_link *empty = &pool.lists[PARTITION_ORDINARY].by_free[HAK_SUPERSLAB_GRANULES];
    if (!hak_list_is_empty(empty) && empty->next->next != empty)
        spare = remove_superslab(hak_list_element(empty->next, struct superslab, link));
    hak_lock_give(&hak_pool_lock);
    return spare;
}

static void refuse_huge_pages(const struct superslab *superslab)
{
    uint32_t first = first_granule_of(superslab);
    if (hak_mappings_admit_advice(first))
        hak_os_refuse_huge_pages(hak_granule_address(first), HAK_SUPERSLAB_BYTES);
}

/* True when the kernel is to be told. */
static bool break_huge(struct superslab *superslab)
{
    if (superslab->pages != PAGES_HUGE)
        return false;
    /* All that is free was warm and stays so: the counts hold. */
    superslab->dirty |= superslab->free;
    superslab->pages = PAGES_BROKEN;
    return true;
}

bool hak_pool_break_huge(uint32_t granule)
{
    struct superslab *superslab = superslab_of(granule);
    hak_lock_take(&hak_pool_lock);
    bool was_huge = superslab->pages == PAGES_HUGE;
    if (was_huge) {
        unlink_superslab(superslab);
        break_huge(superslab);
        link_superslab(superslab);
    }
    bool is_broken = superslab->pages == PAGES_BROKEN;
    hak_lock_give(&hak_pool_lock);
    if (was_huge)
        refuse_huge_pages(superslab);
    return is_broken;
}

void hak_pool_end_huge(uint32_t first_granule)
{
    struct superslab *superslab = superslab_of(first_granule);
    if (superslab->pages == PAGES_ASKED || superslab->pages == PAGES_HUGE)
        refuse_huge_pages(superslab);
    superslab->pages = PAGES_SMALL;
}

/* Purges the runs of `mask`; returns the granules that now read as zero. */
static uint32_t purge_runs(uint32_t first_granule, uint32_t mask)
{
    uint32_t purged = 0;
    while (mask != 0) {
        uint32_t at = hak_bit_lowest(mask);
        uint32_t count = hak_bit_lowest(~((uint64_t)mask >> at));
        uint32_t run = (uint32_t)hak_bit_low_mask(count) << at;
        if (hak_mark_purge(first_granule + at, count))
            purged |= run;
        mask &= ~run;
    }
    return purged;
}

/* A trim says nothing about how long granules should be kept. */
static void note_left(uint32_t count, uint64_t since_ms, uint64_t before_ms)
{
    const struct keep_ghost ghost = {.freed_ms = since_ms, .count = count};
    if (count != 0 && before_ms != UINT64_MAX)
        hak_keep_left(&pool.keep, &ghost, hak_os_clock_ms(), hak_policy_read(pool_episodes));
}

/* Takes the warm free granules of the oldest superslab out, purges them, puts them back: as the
 * youngest, where the kernel refused some. Adds the bytes purged; false: nothing is old enough. */
static bool purge_oldest(uint64_t before_ms, size_t *bytes)
{
    hak_lock_take(&hak_pool_lock);
    start_once();
    struct list_link *oldest = pool.warm.next;
    struct superslab *superslab = hak_list_element(oldest, struct superslab, warm_link);
    if (oldest == &pool.warm || superslab->warm_since_ms > before_ms) {
        hak_lock_give(&hak_pool_lock);
        return false;
    }
    uint32_t mask = warm_mask(superslab);
    uint64_t since_ms = superslab->warm_since_ms;
    unlink_superslab(superslab);
    bool was_huge = mask != ALL_GRANULES && break_huge(superslab);
    superslab->free &= ~mask;
    link_superslab(superslab);
    note_warm(superslab, false);
    hak_lock_give(&hak_pool_lock);

    if (was_huge)
        refuse_huge_pages(superslab);
    uint32_t purged = purge_runs(first_granule_of(superslab), mask);

    hak_lock_take(&hak_pool_lock);
    unlink_superslab(superslab);
    superslab->free |= mask;
    superslab->dirty &= ~purged;
    if (superslab->pages == PAGES_HUGE && purged == ALL_GRANULES)
        superslab->pages = PAGES_ASKED;
    link_superslab(superslab);
    note_warm(superslab, true);
    note_left(hak_bit_count(purged), since_ms, before_ms);
    hak_lock_give(&hak_pool_lock);
    *bytes += (size_t)hak_bit_count(purged) << HAK_GRANULE_SHIFT;
    return true;
}

size_t hak_pool_purge(uint64_t before_ms, uint32_t budget)
{
    size_t total = 0;
    /* Each once, though the kernel may refuse (locked memory). */
    budget = (uint32_t)hak_least(budget, hak_pool_superslab_count());
    while (budget > 0 && purge_oldest(before_ms, &total))
        budget--;
    return total;
}

bool hak_pool_is_untouched(uint32_t granule)
{
    const struct superslab *superslab = superslab_of(granule);
    uint32_t bit = 1u << granule % HAK_SUPERSLAB_GRANULES;
    return pool.is_started && superslab->epoch == pool.epoch && (superslab->free & bit) != 0 &&
           (superslab->dirty & bit) == 0;
}

bool hak_pool_has_warm(uint64_t before_ms)
{
    uint64_t oldest = hak_load_relaxed(&pool.warm_oldest_ms);
    return oldest != 0 && oldest <= before_ms;
}

void hak_pool_mend(void)
{
    if (!hak_lock_is_left(&hak_pool_lock))
        return;
    pool.epoch++;
    pool.is_started = false;
    for (int partition = 0; partition < PARTITION_COUNT; partition++) {
        pool.lists[partition].in_use = 0;
        hak_store_relaxed(&hak_pool_counts.free[partition], 0);
    }
    hak_store_relaxed(&hak_pool_counts.superslab, 0);
    hak_store_relaxed(&hak_pool_counts.warm, 0);
    hak_store_relaxed(&hak_pool_counts.huge, 0);
    hak_store_relaxed(&hak_pool_counts.untouched, 0);
    hak_store_relaxed(&pool.warm_oldest_ms, UINT64_MAX);
    start_once();
    hak_lock_give(&hak_pool_lock);
}
