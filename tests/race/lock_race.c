/* SPDX-License-Identifier: MIT */
/* tests/race/lock_race.c - one thread at a time holds a lock. */
#include "os/lock.h"
#include "racers.h"

#define RACERS 4u
#define ROUNDS 30000u

static struct hak_lock lock = HAK_LOCK_START_WITH(HAK_LOCK_DEPOT);
static struct hak_lock leaf = HAK_LOCK_START_WITH(HAK_LOCK_META);
static uint64_t guarded;
static uint64_t mirror;
static _Atomic uint64_t tries_count;

static void touch(struct racer *racer)
{
    CHECK_EQ(guarded, mirror);
    guarded++;
    stumble(racer);
    mirror++;
}

static void take_and_give(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        hak_lock_take(&lock);
        touch(racer);
        hak_lock_give(&lock);
        stumble(racer);
    }
}

static void try_and_give(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        stumble(racer);
        if (!hak_lock_try(&lock))
            continue;
        touch(racer);
        hak_lock_give(&lock);
        atomic_fetch_add(&tries_count, 1);
    }
}

static void take_both(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        hak_lock_take(&lock);
        stumble(racer);
        hak_lock_take(&leaf);
        touch(racer);
        hak_lock_give(&lock);
        stumble(racer);
        hak_lock_give(&leaf);
    }
}

static void take_leaf(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        hak_lock_take(&leaf);
        touch(racer);
        hak_lock_give(&leaf);
    }
}

TEST(a_lock_excludes_all_others_and_every_waiter_is_woken)
{
    race_alike(RACERS, take_and_give);
    CHECK_EQ(guarded, RACERS * ROUNDS);
    CHECK_EQ(mirror, RACERS * ROUNDS);
    CHECK_EQ(hak_load_relaxed(&lock.state), 0);
}

TEST(a_try_that_succeeds_excludes_as_well)
{
    void (*const bodies[])(struct racer *) = {take_and_give, try_and_give, take_and_give,
                                              try_and_give};
    race(RACERS, bodies);
    CHECK_EQ(guarded, 2 * ROUNDS + atomic_load(&tries_count));
}

TEST(two_locks_taken_in_rank_order_do_not_deadlock)
{
    void (*const bodies[])(struct racer *) = {take_both, take_leaf, take_both, take_leaf};
    race(RACERS, bodies);
    CHECK_EQ(guarded, RACERS * ROUNDS);
}
