/* SPDX-License-Identifier: MIT */
/* tests/interleave/lock_interleave.c - the locks: one thread at a time, and no waiter sleeps for
 * ever. */
#include "../check.h"
#include "interleave.h"
#include "os/flag.h"
#include "os/lock.h"
#include "policy/policy_table.h"

static struct hak_lock lock = HAK_LOCK_START_WITH(HAK_LOCK_DEPOT);
static uint32_t guarded, takings;

static void begin(void)
{
    hak_store_relaxed(&hak_policy.spin_rounds, 0);
}

static void begin_polling(void)
{
    hak_store_relaxed(&hak_policy.spin_rounds, 2);
}

static void work(void)
{
    guarded++;
    takings++;
}

static void take_and_give(void)
{
    hak_lock_take(&lock);
    work();
    hak_lock_give(&lock);
}

static void take_and_give_twice(void)
{
    take_and_give();
    take_and_give();
}

static void try_and_give(void)
{
    if (!hak_lock_try(&lock))
        return;
    work();
    hak_lock_give(&lock);
}

static void take_among(void)
{
    if (!hak_lock_try_among(&lock))
        return;
    work();
    hak_lock_give_among(&lock);
}

static void take_within(void)
{
    if (!hak_lock_take_within(&lock, 10))
        return;
    work();
    hak_lock_give_among(&lock);
}

static void all_have_worked(void)
{
    MUST(guarded == takings);
    MUST(hak_load_relaxed(&lock.state) == 0);
}

static void two_have_worked(void)
{
    all_have_worked();
    MUST(guarded == 2);
}

static void three_have_worked(void)
{
    all_have_worked();
    MUST(guarded == 3);
}

static void four_have_worked(void)
{
    all_have_worked();
    MUST(guarded == 4);
}

static const struct harness harnesses[] = {
    {"two threads", begin, {take_and_give, take_and_give}, two_have_worked, 3, 2, 0},
    {"two threads, twice",
     begin,
     {take_and_give_twice, take_and_give_twice},
     four_have_worked,
     2,
     1,
     0},
    {"two threads that poll",
     begin_polling,
     {take_and_give, take_and_give},
     two_have_worked,
     2,
     2,
     0},
    {"three threads",
     begin,
     {take_and_give, take_and_give, take_and_give},
     three_have_worked,
     2,
     1,
     0},
    {"a try", begin, {take_and_give, try_and_give, take_among}, all_have_worked, 2, 1, 0},
    {"one that may give up",
     begin,
     {take_and_give, take_within, take_and_give},
     all_have_worked,
     2,
     1,
     1},
    {"two that may give up",
     begin,
     {take_within, take_within, take_and_give},
     all_have_worked,
     2,
     1,
     2},
};
#define HARNESS_COUNT (sizeof harnesses / sizeof *harnesses)

TEST(a_lock_excludes_all_others_and_every_waiter_is_woken)
{
    CHECK(interleave_hold(harnesses, HARNESS_COUNT));
}

TEST(every_order_of_the_lock_is_needed)
{
    static const struct kept_order kept[] = {
        {"sleep_once cas acquire #2: without acquire",
         "it only says that a thread sleeps; who takes the lock acquires it by another one"},
        {NULL, NULL}};
    CHECK(interleave_needs_orders("src/os/lock.", harnesses, HARNESS_COUNT, kept));
}

static _Atomic uint32_t flag;

static void take_flag_and_give(void)
{
    if (!hak_flag_await(&flag))
        return;
    work();
    hak_flag_give(&flag);
}

static void try_flag(void)
{
    if (!hak_flag_take(&flag))
        return;
    work();
    hak_flag_give(&flag);
}

static void all_have_worked_by_flag(void)
{
    MUST(guarded == takings && guarded >= 2);
    MUST(hak_load_relaxed(&flag) == 0);
}

TEST(a_flag_is_one_threads_at_a_time_and_its_orders_are_needed)
{
    static const struct harness by_flag = {"a flag",
                                           NULL,
                                           {take_flag_and_give, take_flag_and_give, try_flag},
                                           all_have_worked_by_flag,
                                           2,
                                           2,
                                           0};
    static const struct kept_order kept[] = {{NULL, NULL}};
    CHECK(interleave_needs_orders("os/flag.h lock_interleave.", &by_flag, 1, kept));
}
