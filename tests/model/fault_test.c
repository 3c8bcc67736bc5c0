/* SPDX-License-Identifier: MIT */
/* tests/model/fault_test.c - random operations while the kernel refuses every n-th memory call,
 * or while the window is used up. */
#include "account.h"
#include "faults.h"
#include "operations.h"
#include "os/os_fault.h"
#include "os/thread.h"
#include "policy/policy_table.h"
#include "process/background.h"
#include "process/reclaim.h"
#include "process/tick.h"
#include "threads.h"

static struct reference reference;
static uint32_t injected_count;
static bool had_thread; /* hakmem's own, while calls failed */
static void *ballast;   /* held for the whole run, so that the background thread is worth it */

static void audit(void)
{
    own_heap_check();
    reference_check_overlap(&reference);
}

/* Steps without faults first when `is_warmed_up`, then with every n-th call failing, then
 * without. */
static void run(uint32_t every, uint32_t steps, bool is_warmed_up)
{
    need_faults();
    check_print("every %u\n", every);
    CHECK(hak_process_start());
    reference.random = every;
    for (uint32_t i = 0; is_warmed_up && i < 2000; i++)
        step(&reference, 14);

    reference.may_fail = true;
    hak_os_fault_every(every);
    for (uint32_t i = 0; i < steps; i++) {
        step(&reference, (i / 1000) % 2 == 0 ? 16 : 6);
        if (i % 200 == 199)
            hak_reclaim_purge_all();
        if (i % 500 == 499 && hak_thread_cache() != NULL)
            audit();
    }
    injected_count = hak_load_relaxed(&hak_os_fault.injected);
    had_thread = hak_background_thread(0)->area != NULL;
    hak_os_fault_every(0);

    /* The kernel is back: nothing is refused any more. */
    reference.may_fail = false;
    for (uint32_t i = 0; i < 2000; i++)
        step(&reference, 14);
    audit();
    hak_free(ballast);
    free_everything(&reference);
    check_nothing_is_live();
}

TEST(when_no_memory_call_works_requests_are_refused_and_blocks_stay_intact)
{
    run(1, 6000, true);
    CHECK(injected_count > 0);
}

TEST(when_no_memory_call_ever_worked_requests_are_refused_until_one_does)
{
    run(1, 2000, false);
    CHECK(injected_count > 0);
    CHECK(reference.refused_count > 0);
}

TEST(when_every_second_memory_call_fails_blocks_stay_intact)
{
    run(2, 6000, false);
    CHECK(injected_count > 0);
}

TEST(when_every_third_memory_call_fails_blocks_stay_intact)
{
    run(3, 6000, false);
    CHECK(injected_count > 0);
}

TEST(when_every_fifth_memory_call_fails_blocks_stay_intact)
{
    run(5, 6000, true);
    CHECK(injected_count > 0);
}

TEST(when_every_seventh_memory_call_fails_blocks_stay_intact)
{
    run(7, 6000, false);
    CHECK(injected_count > 0);
}

TEST(when_every_twentieth_memory_call_fails_blocks_stay_intact)
{
    run(20, 8000, false);
    CHECK(injected_count > 0);
}

TEST(when_every_hundredth_memory_call_fails_blocks_stay_intact)
{
    run(100, 8000, true);
    CHECK(injected_count > 0);
}

/* One kind of call alone, each n-th of it. */
static void run_kind(enum os_fault_kind kind)
{
    static const uint32_t each[] = {1, 2, 3, 7, 30};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        hak_store_relaxed(&hak_os_fault.kinds, (uint32_t)kind);
        CHECK_EXITS(run(each[i], 3000, i % 2 == 0), 0);
    }
    CHECK_PASSED();
}

TEST(when_only_mmap_fails_nothing_is_lost)
{
    run_kind(FAULT_MAP);
}

TEST(when_only_mprotect_fails_nothing_is_lost)
{
    run_kind(FAULT_PROTECT);
}

TEST(when_only_madvise_fails_nothing_is_lost)
{
    run_kind(FAULT_ADVISE);
}

TEST(when_only_mremap_fails_nothing_is_lost)
{
    run_kind(FAULT_MOVE);
}

static void *hold_heap(void *argument)
{
    hak_free(hak_malloc(100));
    hak_store_release((_Atomic uint32_t *)argument, 1);
    for (;;)
        pause();
    return argument;
}

/* A process with two heaps gets the background thread by its size alone. */
static void have_two_heaps(void)
{
    static _Atomic uint32_t is_there;
    start_thread(hold_heap, &is_there);
    while (hak_load_acquire(&is_there) == 0)
        usleep(100);
}

static void run_beside_thread(uint32_t every)
{
    have_two_heaps();
    fail_every(every, FAULT_THREAD);
    ballast = hak_malloc(80 * HAK_MIB);
    CHECK(ballast != NULL);
    run(every, 3000, false);
    CHECK(every != 1 || !HAK_OWN_THREADS_ALLOWED || injected_count > 0);
    CHECK_EQ(had_thread, every != 1 && HAK_OWN_THREADS_ALLOWED);
}

TEST(when_only_clone_fails_nothing_is_lost)
{
    CHECK_EXITS(run_beside_thread(1), 0);
    CHECK_EXITS(run_beside_thread(2), 0);
    CHECK_PASSED();
}

/* The background thread is not to be had: slow paths do its work. */
TEST(when_only_clone_fails_slow_paths_give_memory_back)
{
    need_faults();
    have_two_heaps();
    fail_every(1, FAULT_THREAD);
    hak_store_relaxed(&hak_policy.decay_ms, 5);
    void *blocks[80];
    uint64_t begun_ms = hak_os_clock_ms();
    for (int i = 0; i < 80; i++) {
        blocks[i] = hak_malloc(HAK_MIB);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, HAK_MIB);
    }
    usleep(30000);
    hak_tick_now();
    CHECK(!HAK_OWN_THREADS_ALLOWED || hak_load_relaxed(&hak_os_fault.injected) > 0);
    for (int i = 0; i < 80; i++)
        hak_free(blocks[i]);
    for (int i = 0; i < 200 && hak_span_warm_bytes() > 20 * HAK_MIB; i++) {
        usleep(30000);
        hak_tick_now();
    }
    CHECK(hak_span_warm_bytes() <= 20 * HAK_MIB);
    /* It is asked for again once a second. */
    CHECK(hak_load_relaxed(&hak_os_fault.injected) <= 2 + (hak_os_clock_ms() - begun_ms) / 900);
    check_nothing_is_live();
}

TEST(whichever_memory_call_fails_first_nothing_breaks)
{
    for (uint32_t every = 1; every <= 40; every++)
        CHECK_EXITS(run(every, 300, false), 0);
}

TEST(in_a_window_that_is_used_up_requests_are_refused_and_blocks_stay_intact)
{
    CHECK(hak_process_start());
    size_t window_bytes = hak_region.window_bytes;
    hak_region.window_bytes = 96 * HAK_MIB;
    reference.random = 9;
    reference.may_fail = true;
    for (uint32_t i = 0; i < 20000; i++) {
        step(&reference, (i / 2000) % 2 == 0 ? 18 : 6);
        if (i % 500 == 0)
            audit();
    }
    CHECK(reference.refused_count > 0);
    hak_region.window_bytes = window_bytes;
    reference.may_fail = false;
    for (uint32_t i = 0; i < 2000; i++)
        step(&reference, 14);
    free_everything(&reference);
    check_nothing_is_live();
}

TEST(frees_are_collected_after_the_kernel_refused_everything)
{
    need_faults();
    reference.random = 1;
    for (uint32_t i = 0; i < 3000; i++)
        step(&reference, 16);
    hak_os_fault_every(1);
    free_everything(&reference);
    hak_reclaim_purge_all();
    hak_os_fault_every(0);
    check_nothing_is_live();
}
