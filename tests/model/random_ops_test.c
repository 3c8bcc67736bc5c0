/* SPDX-License-Identifier: MIT */
/* tests/model/random_ops_test.c - random operations against the reference; nothing may fail. */
#include "account.h"
#include "conf/conf.h"
#include "heap/heaps.h"
#include "misuse/harden.h"
#include "operations.h"
#include "os/os_fault.h"
#include "policy/policy_table.h"
#include "process/reclaim.h"
#include "unit/smaps.h"

static struct reference reference;

static void audit(void)
{
    own_heap_check();
    reference_check_overlap(&reference);
}

static void run(uint64_t seed, uint32_t steps)
{
    check_print("seed %llu\n", (unsigned long long)seed);
    hak_conf.number[CONF_maintenance] = MAINTENANCE_OFF; /* what is compared stands still */
    reference.random = seed;
    /* Tides: the number of live blocks rises and falls, so that slabs and spans come and go. */
    for (uint32_t i = 0; i < steps; i++) {
        step(&reference, (i / 2000) % 2 == 0 ? 16 : 4);
        if (i % 500 == 0)
            audit();
        if (i % 1000 == 999)
            check_residency_adds_up();
    }
    audit();
    free_everything(&reference);
    check_nothing_is_live();
    CHECK(check_residency_adds_up().live_bytes < 64 * HAK_KIB);
}

TEST(random_operations_agree_with_the_reference_seed_1)
{
    run(1, 80000);
}

TEST(random_operations_agree_with_the_reference_seed_2)
{
    run(2, 80000);
}

TEST(random_operations_agree_with_the_reference_seed_3)
{
    run(3, 80000);
}

TEST(random_operations_agree_with_the_reference_after_all_blocks_are_flushed)
{
    run(4, 20000);
    run(5, 20000);
    run(6, 20000);
}

static void run_with_purges(uint32_t seed)
{
    reference.random = seed;
    for (uint32_t i = 0; i < 25000; i++) {
        step(&reference, (i / 500) % 2 == 0 ? 14 : 6);
        if (i % 50 == 0)
            hak_reclaim_purge_all();
    }
    audit();
    free_everything(&reference);
    check_nothing_is_live();
}

TEST(random_operations_agree_with_the_reference_when_free_memory_is_purged_often)
{
    run_with_purges(7);
}

/* Others would wait for the heap as long as the kernel takes. */
static void check_outside(void)
{
    CHECK(!hak_heap_is_held());
}

/* With one heap, records grow inside: nobody waits. */
static void make_two_heaps(void)
{
    CHECK(hak_process_start());
    struct heap *first = hak_heap_enter(), *second = hak_heap_enter();
    hak_heap_leave(second);
    hak_heap_leave(first);
    CHECK_EQ(hak_heap_count(), 2);
}

TEST(no_system_call_is_made_inside_a_heap)
{
    make_two_heaps();
    if (hak_harden_has(HARDEN_EXACT))
        SKIP("guards and marks of a slab are made with it");
    hak_store_relaxed(&hak_os_fault.watch, check_outside);
    run_with_purges(11);
    reference.random = 12;
    for (uint32_t i = 0; i < 25000; i++) {
        step(&reference, (i / 500) % 2 == 0 ? 14 : 6);
        if (i % 1000 == 0)
            hak_reclaim_trim(0);
    }
    free_everything(&reference);
    hak_reclaim_trim(0);
}

/* Their slabs are made without a refill. */
TEST(no_system_call_is_made_inside_a_heap_for_zero_blocks)
{
    static void *blocks[4000];
    make_two_heaps();
    if (hak_harden_has(HARDEN_EXACT))
        SKIP("guards and marks of a slab are made with it");
    hak_store_relaxed(&hak_os_fault.watch, check_outside);
    for (size_t i = 0; i < 4000; i++)
        CHECK((blocks[i] = hak_calloc(1, 10000)) != NULL);
    for (size_t i = 0; i < 4000; i++)
        hak_free(blocks[i]);
}

TEST(random_operations_agree_with_the_reference_on_huge_pages)
{
    hak_store_relaxed(&hak_policy.huge_heap_superslabs, 0);
    hak_store_relaxed(&hak_policy.huge_class_bytes, 0);
    run(9, 40000);
    run_with_purges(10);
}

TEST(random_operations_agree_with_the_reference_when_bins_are_flushed_often)
{
    reference.random = 8;
    for (uint32_t i = 0; i < 25000; i++) {
        step(&reference, (i / 500) % 2 == 0 ? 14 : 6);
        if (i % 20 == 0)
            cache_empty(hak_thread_cache());
    }
    audit();
    free_everything(&reference);
    check_nothing_is_live();
}
