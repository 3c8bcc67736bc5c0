/* SPDX-License-Identifier: MIT */
/* tests/unit/os/lock_test.c - states of a lock, and ranks that are asserted. */
#include "asleep.h"
#include "check.h"
#include "os/lock.h"
#include "os/os.h"
#include "threads.h"

#include <signal.h>

static struct hak_lock low = HAK_LOCK_START_WITH(HAK_LOCK_CACHES);
static struct hak_lock same = HAK_LOCK_START_WITH(HAK_LOCK_CACHES);
static struct hak_lock high = HAK_LOCK_START_WITH(HAK_LOCK_META);

static void take(struct hak_lock *first, struct hak_lock *second)
{
    hak_lock_take(first);
    hak_lock_take(second);
}

TEST(a_held_lock_cannot_be_tried)
{
    CHECK(hak_lock_try(&low));
    CHECK(!hak_lock_try(&low));
    hak_lock_give(&low);
    CHECK_EQ(hak_load_relaxed(&low.state), 0);
    CHECK(hak_lock_try(&low));
}

TEST(locks_are_taken_in_rising_rank_and_given_in_any_order)
{
    take(&low, &high);
    hak_lock_give(&low);
    hak_lock_give(&high);
    take(&low, &high);
    hak_lock_give(&high);
    hak_lock_give(&low);
    CHECK_EQ(hak_load_relaxed(&low.state) + hak_load_relaxed(&high.state), 0);
}

TEST(a_lock_taken_out_of_rank_aborts)
{
    if (HAK_CHECK_LEVEL < 1)
        SKIP("ranks are not kept below check level 1");
    CHECK_ABORTS(take(&high, &low), "hakmem: lock taken out of rank");
    CHECK_ABORTS(take(&low, &same), "hakmem: lock taken out of rank");
    CHECK_EXITS(take(&low, &high), 0);
}

TEST(a_lock_that_is_not_held_cannot_be_given)
{
    if (HAK_CHECK_LEVEL < 1)
        SKIP("ranks are not kept below check level 1");
    CHECK_ABORTS(hak_lock_give(&high), "hakmem: lock given back that is not held");
}

TEST(a_reset_lock_is_free_whichever_thread_held_it)
{
    hak_lock_take(&low);
    hak_lock_reset(&low);
    CHECK_EQ(hak_load_relaxed(&low.state), 0);
    hak_lock_take(&low);
    hak_lock_give(&low);
    CHECK_EQ(hak_load_relaxed(&low.state), 0);
}

static _Atomic int steps;

static void *take_and_give(void *argument)
{
    (void)argument;
    hak_lock_take(&low);
    hak_store_release(&steps, 1);
    hak_lock_give(&low);
    return NULL;
}

TEST(a_thread_that_waits_for_a_lock_sleeps_and_is_woken)
{
    hak_lock_take(&low);
    pthread_t thread = start_thread(take_and_give, NULL);
    while (!(hak_load_relaxed(&low.state) & HAK_LOCK_SLEEPS))
        usleep(1000);
    CHECK_EQ(hak_load_acquire(&steps), 0);
    const struct hak_lock_waits *waits = &hak_lock_waits[HAK_LOCK_CACHES];
    CHECK_EQ(hak_load_relaxed(&waits->count), 0);
    uint64_t slept_from_ns = hak_os_clock_ns();
    usleep(1000);
    uint64_t slept_ns = hak_os_clock_ns() - slept_from_ns;
    hak_lock_give(&low);
    join_thread(thread);
    CHECK_EQ(hak_load_relaxed(&waits->count), 1);
    CHECK(hak_load_relaxed(&waits->time_ns) >= slept_ns);
    CHECK_EQ(steps, 1);
    CHECK_EQ(hak_load_relaxed(&low.state), 0);
}

#define PATIENCE_MS 100
/* Below the time after which a sleeper checks by itself. */
#define UNWOKEN_MS 900

static atomic_int patient_id, taker_id;
static _Atomic uint64_t deadline_ms;

static void *take_for_a_while(void *argument)
{
    deadline_ms = hak_os_clock_ms() + PATIENCE_MS;
    patient_id = thread_id();
    if (hak_lock_take_within(&low, PATIENCE_MS))
        hak_lock_give_among(&low);
    return argument;
}

static void *take_in_any_case(void *argument)
{
    taker_id = thread_id();
    hak_lock_take(&low);
    hak_lock_give(&low);
    return argument;
}

/* The first sleeper is woken, and its time is up. If the waking were lost, 59 rounds of 60 would
 * take as long as the other one sleeps; a busy machine can make one or two so long. */
TEST(a_waking_that_comes_too_late_for_one_thread_is_another_one_s)
{
    int long_count = 0;
    for (int i = 0; i < 5; i++) {
        pthread_t patient, taker;
        patient_id = taker_id = 0;
        hak_lock_take(&low);
        CHECK_EQ(pthread_create(&patient, NULL, take_for_a_while, NULL), 0);
        while (patient_id == 0 || (!is_asleep(patient_id) && hak_os_clock_ms() < deadline_ms))
            sched_yield();
        CHECK_EQ(pthread_create(&taker, NULL, take_in_any_case, NULL), 0);
        await_sleep(&taker_id);
        while (hak_os_clock_ms() < deadline_ms)
            sched_yield();
        uint64_t given_ms = hak_os_clock_ms();
        hak_lock_give(&low);
        CHECK_EQ(pthread_join(patient, NULL), 0);
        CHECK_EQ(pthread_join(taker, NULL), 0);
        long_count += hak_os_clock_ms() - given_ms >= UNWOKEN_MS;
    }
    CHECK(long_count <= 2);
}

static uint64_t blocked_signals(void)
{
    uint64_t blocked = hak_os_block_signals();
    hak_os_restore_signals(blocked);
    return blocked;
}

#define CANCELLATION_SIGNAL 32
#define BIT(number) (1ull << ((number) - 1))

TEST(a_program_that_only_handles_signals_blocks_none)
{
    signal(SIGUSR1, exit);
    for (int i = 0; i < 10000; i++) {
        take(&low, &high);
        CHECK_EQ(blocked_signals(), 0);
        hak_lock_give(&low), hak_lock_give(&high);
    }
}

TEST(sections_block_signals_once_a_handler_was_met_in_one)
{
    hak_lock_take(&low);
    hak_lock_note_handler();
    hak_lock_give(&low);
    CHECK_EQ(blocked_signals(), 0);
    take(&low, &high);
    hak_lock_give(&low);
    CHECK(blocked_signals() & BIT(SIGUSR1));
    CHECK(blocked_signals() & BIT(CANCELLATION_SIGNAL));
    CHECK(!(blocked_signals() & BIT(SIGSEGV)));
    hak_lock_give(&high);
    CHECK_EQ(blocked_signals(), 0);
    CHECK_EQ(hak_lock_held, 0);
}

TEST(signals_that_the_program_blocked_stay_blocked)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    hak_lock_note_handler();
    hak_lock_take(&low);
    CHECK(!hak_lock_try(&low));
    CHECK(hak_lock_is_inside());
    hak_lock_give(&low);
    CHECK_EQ(blocked_signals(), BIT(SIGUSR2));
    hak_lock_take(&high);
    hak_lock_give(&high);
    CHECK_EQ(blocked_signals(), BIT(SIGUSR2));
    CHECK(!hak_lock_is_inside());
}

static void wait_for_oneself(void)
{
    hak_lock_take(&low);
    hak_lock_take(&low);
}

TEST(a_thread_that_would_wait_for_itself_aborts)
{
    CHECK_ABORTS(wait_for_oneself(), HAK_CHECK_LEVEL >= 1
                                         ? "hakmem: lock taken out of rank"
                                         : "hakmem: a signal handler needs what its own thread");
}

TEST(a_forking_thread_holds_every_lock_and_may_take_each_again)
{
    hak_lock_begin_fork();
    take(&low, &high);
    hak_lock_note_all();
    CHECK(!hak_lock_is_inside());
    hak_lock_take(&low);
    CHECK(hak_lock_try(&high));
    hak_lock_give(&high);
    hak_lock_give(&low);
    CHECK_EQ(hak_load_relaxed(&low.state), hak_lock_self());
    hak_lock_forget_all();
    hak_lock_give(&high);
    CHECK(blocked_signals() & BIT(SIGUSR1));
    hak_lock_give(&low);
    CHECK_EQ(blocked_signals(), 0);
    CHECK_EQ(hak_load_relaxed(&low.state), 0);
}

TEST(no_place_of_a_thread_makes_a_held_lock_look_free)
{
    for (uintptr_t address = 0; address < (uintptr_t)1 << 47; address += (uintptr_t)1 << 37)
        CHECK(hak_lock_word_of(address) != 0);
    CHECK_EQ(hak_lock_word_of((uintptr_t)1 << 37) & HAK_LOCK_SLEEPS, 0);
}

static _Atomic int was_taken_for_left;

static void look_in_handler(int number)
{
    (void)number;
    was_taken_for_left = hak_lock_is_abandoned();
}

static HAK_NOINLINE void raise_inside(void)
{
    hak_lock_take(&low);
    raise(SIGUSR1);
    hak_lock_give(&low);
}

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

/* The handler's stack lies above what it interrupts, and the kernel does not say that it is one. */
TEST(a_section_is_not_taken_for_left_by_a_handler_on_a_stack_that_disarms_itself)
{
    char place[64 * 1024];
    stack_t stack = {.ss_sp = place, .ss_size = sizeof place, .ss_flags = (int)SS_AUTODISARM};
    struct sigaction action = {.sa_handler = look_in_handler, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, NULL) != 0)
        SKIP("a kernel without SS_AUTODISARM");
    was_taken_for_left = -1;
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    raise_inside();
    CHECK_EQ(was_taken_for_left, 0);
}

static void *leave_low(void *unused)
{
    hak_lock_take(&low);
    return unused;
}

TEST(in_a_copy_locks_of_others_are_left_and_ones_own_are_not)
{
    in_thread(leave_low, NULL);
    hak_lock_take(&high);
    CHECK(!hak_lock_is_left(&low));
    uint32_t held = hak_lock_begin_settling();
    CHECK(hak_lock_is_left(&low));
    hak_lock_give(&low);
    CHECK(!hak_lock_is_left(&low));
    CHECK(!hak_lock_is_left(&high));
    hak_lock_end_settling(held);
    CHECK(hak_lock_is_own(&high));
    CHECK_EQ(hak_load_relaxed(&low.state), 0);
}

/* A handler copies the process while its thread waits for a lock. In the copy the thread goes on to
 * take it, and a later handler must see that. */
TEST(a_copy_keeps_the_note_of_the_lock_that_its_thread_waits_for)
{
    in_thread(leave_low, NULL);
    hak_lock_begin(low.rank); /* as in hak_lock_take, before it waits */
    uint32_t held = hak_lock_begin_settling();
    CHECK(hak_lock_is_left(&low));
    hak_lock_give(&low);
    hak_lock_end_settling(held);
    CHECK(hak_lock_is_noted(low.rank));
    CHECK(hak_lock_try_among(&low));
    hak_lock_give(&low);
    CHECK_EQ(hak_lock_held, 0);
}
