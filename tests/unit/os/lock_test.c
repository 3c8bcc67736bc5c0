/* SPDX-License-Identifier: MIT */
/* tests/unit/os/lock_test.c - states of a lock, and ranks that are asserted. */
#include "check.h"
#include "os/lock.h"

#include <pthread.h>

static struct hak_lock low = HAK_LOCK_START_WITH(HAK_LOCK_REGISTRY);
static struct hak_lock same = HAK_LOCK_START_WITH(HAK_LOCK_REGISTRY);
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

TEST(a_reset_lock_is_free_whoever_held_it)
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

TEST(who_waits_for_a_lock_sleeps_and_is_woken)
{
    pthread_t thread;
    hak_lock_take(&low);
    CHECK_EQ(pthread_create(&thread, NULL, take_and_give, NULL), 0);
    while (hak_load_relaxed(&low.state) != 2)
        usleep(1000);
    CHECK_EQ(hak_load_acquire(&steps), 0);
    hak_lock_give(&low);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(steps, 1);
    CHECK_EQ(hak_load_relaxed(&low.state), 0);
}
