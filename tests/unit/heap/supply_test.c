/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/supply_test.c - slabs get granules, and leave them as they found them. */
#include "asleep.h"
#include "base/bits.h"
#include "check.h"
#include "conf/conf.h"
#include "faults.h"
#include "heap/supply.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "os/os_huge.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "region/mappings.h"
#include "region/tag_map.h"
#include "slab/superslab_pool.h"
#include "slabs.h"
#include "span/span_heap.h"
#include "threads.h"

static struct slab_owner owner = {.heap_id = 9};
static struct stat_block stats;

static struct slab *supply(size_t bytes)
{
    CHECK(hak_process_start());
    struct slab *slab = make_slab(hak_class_of(bytes), &owner, &stats);
    CHECK(slab != NULL);
    return slab;
}

static uint64_t counted(enum hak_stat stat)
{
    return hak_load_relaxed(&stats.counters[stat]);
}

TEST(a_slab_has_the_tags_of_its_class)
{
    struct slab *slab = supply(65536);
    uint32_t first = hak_granule_of((void *)slab->start);
    for (uint32_t i = 0; i < slab->granule_count; i++)
        CHECK_EQ(hak_tag_read(first + i), hak_tag_of(slab->class_index));
    CHECK_EQ(first / HAK_SUPERSLAB_GRANULES,
             (first + slab->granule_count - 1) / HAK_SUPERSLAB_GRANULES);
    hak_supply_retire(slab);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(hak_tag_read(first + i), HAK_TAG_NONE);
}

TEST(the_stages_are_counted)
{
    struct slab *first = supply(64);
    CHECK_EQ(counted(HAK_STAT_fresh_slabs), 1);
    supply(64);
    CHECK_EQ(counted(HAK_STAT_purged_slabs), 1);
    void *block;
    hak_slab_take(first, &block, 1);
    hak_slab_give(first, block);
    hak_supply_retire(first);
    supply(64);
    CHECK_EQ(counted(HAK_STAT_recycled_slabs), 1);
}

#define NEVER_SLOW 60000000 /* us */

TEST(huge_pages_are_asked_for_classes_that_grow_in_processes_that_are_not_small)
{
    hak_store_relaxed(&hak_policy.huge_slow_us, NEVER_SLOW);
    hak_store_relaxed(&hak_policy.huge_heap_superslabs, 2);
    hak_store_relaxed(&hak_policy.huge_class_bytes, 4 * HAK_GRANULE_BYTES);
    while (hak_pool_superslab_count() < 3)
        supply(64);
    CHECK_EQ(counted(HAK_STAT_huge_superslabs), 1);
    while (hak_pool_superslab_count() < 4) {
        static struct slab_owner another; /* has next to nothing */
        memset(another.use, 0, sizeof another.use);
        CHECK(make_slab(hak_class_of(64), &another, &stats) != NULL);
    }
    CHECK_EQ(counted(HAK_STAT_huge_superslabs), 1);
}

/* However small the process and the class. */
static void let_all_be_huge(void)
{
    hak_store_relaxed(&hak_policy.huge_heap_superslabs, 0);
    hak_store_relaxed(&hak_policy.huge_class_bytes, 0);
}

/* How many of `count` new superslabs asked for huge pages. */
static uint64_t asked_of(uint32_t count)
{
    uint64_t before = counted(HAK_STAT_huge_superslabs);
    for (uint32_t most = hak_pool_superslab_count() + count; hak_pool_superslab_count() < most;)
        supply(64);
    return counted(HAK_STAT_huge_superslabs) - before;
}

TEST(after_a_slow_huge_page_superslabs_are_small_for_a_while)
{
    let_all_be_huge();
    hak_store_relaxed(&hak_policy.huge_slow_us, NEVER_SLOW);
    if (asked_of(10) != 10)
        SKIP("huge pages are not to be asked for");
    CHECK_EQ(counted(HAK_STAT_huge_slow), 0);
    hak_store_relaxed(&hak_policy.huge_slow_us, 0);
    /* Two of ten were timed, the first and the ninth; the next that is timed is the seventeenth. */
    CHECK_EQ(asked_of(7 + 1 + 3 + 7), 7 + 1 + 1);
    CHECK_EQ(counted(HAK_STAT_huge_slow), 3);
}

TEST(huge_pages_are_not_asked_above_the_soft_limit)
{
    let_all_be_huge();
    hak_store_relaxed(&hak_policy.huge_slow_us, NEVER_SLOW);
    if (asked_of(2) != 2)
        SKIP("huge pages are not to be asked for");
    hak_store_relaxed(&hak_policy.soft_limit_bytes, HAK_GRANULE_BYTES);
    CHECK_EQ(asked_of(2), 0);
}

TEST(huge_pages_are_not_asked_where_the_user_forbids_them)
{
    let_all_be_huge();
    for (int thp = THP_OFF; thp <= THP_ON; thp++) {
        supply(64);
        uint64_t before = counted(HAK_STAT_huge_superslabs);
        __atomic_store_n(&hak_conf.number[CONF_thp], thp, __ATOMIC_RELAXED);
        for (uint32_t count = hak_pool_superslab_count(); hak_pool_superslab_count() == count;)
            supply(64);
        CHECK_EQ(counted(HAK_STAT_huge_superslabs) - before, thp != THP_OFF);
    }
}

TEST(only_touched_granules_come_back_dirty)
{
    struct slab *slab = supply(65536);
    CHECK(slab->granule_count >= 2);
    void *block;
    hak_slab_take(slab, &block, 1);
    memset(block, 1, 65536);
    hak_slab_give(slab, block);
    hak_supply_retire(slab);
    CHECK_EQ(hak_pool_warm_count(), 1);
    CHECK(hak_slab_take_zero(supply(1024)) == NULL);
    CHECK(hak_slab_take_zero(supply(1024)) != NULL);
}

TEST(slabs_of_all_classes_fill_superslabs_and_return_them)
{
    static struct slab *slabs[4 * HAK_CLASS_COUNT];
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 4 * HAK_CLASS_COUNT; i++)
            slabs[i] = supply(hak_size_classes[i % HAK_CLASS_COUNT].block_bytes);
        CHECK_EQ(hak_slab_record_count(), 4 * HAK_CLASS_COUNT);
        CHECK(hak_pool_superslab_count() > 1);
        for (uint32_t i = 0; i < 4 * HAK_CLASS_COUNT; i++)
            hak_supply_retire(slabs[i]);
        CHECK_EQ(hak_slab_record_count(), 0);
        CHECK_EQ(hak_pool_superslab_count(), 1);
        CHECK(hak_span_heap_is_sound());
        CHECK_EQ(hak_span_warm_bytes() + hak_span_clean_bytes() + HAK_SUPERSLAB_BYTES,
                 hak_load_relaxed(&hak_region.committed_bytes));
    }
}

TEST(without_memory_there_is_no_slab_and_everything_is_as_before)
{
    need_faults();
    CHECK(hak_process_start());
    hak_os_fault_every(1);
    CHECK_EQ(make_slab(3, &owner, &stats), NULL);
    hak_os_fault_every(0);
    CHECK_EQ(hak_slab_record_count(), 0);
    supply(64);
    CHECK_EQ(counted(HAK_STAT_fresh_slabs), 1);
}

TEST(granules_are_not_lost_when_there_is_no_memory_for_their_record)
{
    need_faults();
    CHECK(hak_process_start());
    for (uint32_t every = 1; every < 40; every++) {
        hak_os_fault_every(every);
        struct slab *slab = make_slab(hak_class_of(131072), &owner, &stats);
        hak_os_fault_every(0);
        if (slab != NULL)
            hak_supply_retire(slab);
        CHECK(hak_span_heap_is_sound());
        CHECK_EQ(hak_span_warm_bytes() + hak_span_clean_bytes() +
                     hak_pool_superslab_count() * HAK_SUPERSLAB_BYTES,
                 hak_load_relaxed(&hak_region.committed_bytes));
    }
}

/* A kernel with another setting, and a process in which every class deserves huge pages. */
static void pretend(enum os_huge setting)
{
    need_faults();
    hak_store_relaxed(&hak_os_fault.huge_pages, (uint32_t)setting + 1);
    let_all_be_huge();
    CHECK(hak_process_start());
}

static void fill_superslabs(uint32_t count)
{
    while (hak_pool_superslab_count() < count)
        supply(65536);
}

TEST(a_kernel_without_huge_pages_is_not_asked)
{
    pretend(HUGE_NEVER);
    uint32_t first_count = (uint32_t)(HAK_SMALL_PAGES_BYTES / HAK_SUPERSLAB_BYTES);
    fill_superslabs(first_count);
    uint64_t calls = hak_load_relaxed(&hak_os_counters.advise_count);
    fill_superslabs(first_count + 4);
    CHECK_EQ(counted(HAK_STAT_huge_superslabs), 0);
    CHECK_EQ(hak_pool_huge_count(), 0);
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.advise_count), calls);
}

/* Blocks of 64 KiB: whether they are touched whole is not known. */
TEST(where_huge_pages_come_unasked_superslabs_that_did_not_ask_refuse_them)
{
    pretend(HUGE_ALWAYS);
    hak_store_relaxed(&hak_policy.huge_heap_superslabs, HAK_MIB);
    uint32_t first_count = (uint32_t)(HAK_SMALL_PAGES_BYTES / HAK_SUPERSLAB_BYTES);
    fill_superslabs(first_count);
    uint64_t calls = hak_load_relaxed(&hak_os_counters.advise_count);
    uint32_t count = hak_pool_superslab_count();
    fill_superslabs(first_count + 3);
    CHECK_EQ(hak_pool_huge_count(), 0);
    CHECK_EQ(hak_pool_untouched_count(), 0);
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.advise_count) - calls,
             hak_pool_superslab_count() - count);
}

/* So few mappings are left that the kernel is not told. */
TEST(where_huge_pages_come_unasked_superslabs_may_be_huge_but_for_the_first)
{
    pretend(HUGE_ALWAYS);
    hak_store_relaxed(&hak_policy.huge_heap_superslabs, HAK_MIB);
    uint32_t first_count = (uint32_t)(HAK_SMALL_PAGES_BYTES / HAK_SUPERSLAB_BYTES);
    fill_superslabs(first_count);
    CHECK_EQ(hak_pool_huge_count(), 0);
    while (hak_mappings_take(1))
        continue;
    fill_superslabs(first_count + 3);
    CHECK_EQ(counted(HAK_STAT_huge_superslabs), 0);
    CHECK(hak_pool_huge_count() >= 2);
    /* The part of the last one that no slab has yet is resident with it. */
    CHECK(hak_pool_untouched_count() > 0);
    CHECK_EQ(hak_pool_untouched_count(), hak_pool_warm_count());
}

TEST(a_superslab_for_which_the_kernel_refuses_huge_pages_is_a_small_one)
{
    pretend(HUGE_ON_REQUEST);
    supply(65536);
    uint32_t before = hak_pool_huge_count();
    hak_os_fault_every(1);
    while (hak_span_clean_bytes() >= HAK_SUPERSLAB_BYTES &&
           make_slab(hak_class_of(65536), &owner, &stats) != NULL)
        continue;
    uint32_t superslabs = hak_pool_superslab_count();
    hak_os_fault_every(0);
    CHECK(superslabs > 0);
    CHECK(hak_pool_huge_count() <= before);
    supply(65536);
}

TEST(what_is_sparse_shares_superslabs_of_small_pages_that_were_never_used)
{
    static struct slab_owner sparse = {.heap_id = 10, .is_private = true, .is_sparse = true};
    pretend(HUGE_ALWAYS);
    uint32_t first_count = (uint32_t)(HAK_SMALL_PAGES_BYTES / HAK_SUPERSLAB_BYTES);
    fill_superslabs(first_count + 2);
    hak_supply_retire(supply(65536)); /* warm granules, which others would get */
    uint64_t refusals = hak_load_relaxed(&hak_os_counters.advise_count);
    uint32_t huge_count = hak_pool_huge_count();
    struct slab *slabs[3];
    for (uint32_t i = 0; i < 3; i++) {
        slabs[i] = make_slab(hak_class_of(64 << i), &sparse, &stats);
        CHECK(slabs[i] != NULL);
        CHECK_EQ(slabs[i]->zero_from, 0);
        CHECK_EQ(slabs[i]->start / HAK_SUPERSLAB_BYTES, slabs[0]->start / HAK_SUPERSLAB_BYTES);
    }
    CHECK_EQ(hak_pool_huge_count(), huge_count);
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.advise_count), refusals + 1);
    struct slab *ordinary = supply(64);
    CHECK(ordinary->start / HAK_SUPERSLAB_BYTES != slabs[0]->start / HAK_SUPERSLAB_BYTES);
    for (uint32_t i = 0; i < 3; i++)
        hak_supply_retire(slabs[i]);
}

TEST(a_superslab_is_added_before_the_last_granules_are_taken)
{
    supply(64);
    hak_supply_grow_ahead(hak_class_of(64), &owner, &stats);
    CHECK_EQ(hak_pool_superslab_count(), 1); /* small processes do not grow ahead */
    fill_superslabs(16);
    while (hak_pool_free_count_all() >= 16) {
        hak_supply_grow_ahead(hak_class_of(64), &owner, &stats);
        CHECK_EQ(hak_pool_superslab_count(), 16);
        supply(64);
    }
    uint32_t count = 16;
    while (hak_pool_free_count_all() < 16) {
        hak_supply_grow_ahead(hak_class_of(64), &owner, &stats);
        CHECK_EQ(hak_pool_superslab_count(), ++count);
    }
    CHECK(count > 16);
    hak_supply_grow_ahead(hak_class_of(64), &owner, &stats);
    CHECK_EQ(hak_pool_superslab_count(), count);
}

TEST(granules_that_were_brought_in_vain_go_back)
{
    supply(64);
    uint32_t free_before = hak_pool_free_count_all(), class_index = hak_class_of(64);
    struct pool_granules brought = hak_supply_bring(class_index, &owner, &stats);
    CHECK_EQ(brought.count, hak_size_classes[class_index].granule_count);
    CHECK_EQ(hak_pool_free_count_all(), free_before - brought.count);
    hak_supply_give_up(&brought);
    CHECK_EQ(brought.count, 0);
    CHECK_EQ(hak_pool_free_count_all(), free_before);
    CHECK_EQ(hak_supply_make(class_index, &brought, &owner, &stats), NULL);
}

#define WAITERS 4
static atomic_int waiters[WAITERS];

static void *bring(void *id)
{
    static struct stat_block shared;
    atomic_store((atomic_int *)id, thread_id());
    CHECK(hak_supply_bring(hak_class_of(64), &owner, &shared).count != 0);
    return NULL;
}

TEST(those_that_waited_for_memory_find_what_another_has_added)
{
    CHECK(hak_process_start());
    CHECK_EQ(hak_pool_superslab_count(), 0);
    pthread_t threads[WAITERS];
    hak_lock_take(&hak_region.growth_lock);
    for (int i = 0; i < WAITERS; i++) {
        threads[i] = start_thread(bring, &waiters[i]);
        await_sleep(&waiters[i]);
    }
    hak_lock_give(&hak_region.growth_lock);
    join_threads(threads, WAITERS);
    CHECK_EQ(hak_pool_superslab_count(), 1);
}
