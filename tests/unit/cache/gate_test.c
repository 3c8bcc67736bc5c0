/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/gate_test.c - marks, claims and patience, step by step. */
#include "cache/gate.h"
#include "check.h"
#include "os/lock.h"
#include "os/os.h"

#include <pthread.h>

static struct gate gate;

static void start(void)
{
    hak_os_start();
    hak_gate_start();
}

TEST(the_process_uses_membarrier_where_the_kernel_has_it)
{
    start();
    CHECK_EQ(hak_gate_is_asymmetric, hak_os_has_membarrier());
}

TEST(an_owner_inside_is_nested_until_it_leaves)
{
    start();
    CHECK(!hak_gate_is_nested(&gate));
    hak_gate_enter(&gate);
    CHECK(hak_gate_is_nested(&gate));
    hak_gate_leave(&gate);
    CHECK(!hak_gate_is_nested(&gate));
}

TEST(one_stranger_at_a_time_has_the_claim)
{
    start();
    CHECK(hak_gate_mark(&gate));
    CHECK(!hak_gate_mark(&gate));
    hak_gate_barrier();
    CHECK(hak_gate_await(&gate, 10));
    CHECK(!hak_gate_mark(&gate));
    hak_gate_release(&gate);
    CHECK(hak_gate_mark(&gate));
}

TEST(a_stranger_loses_patience_with_an_owner_who_stays_and_withdraws_its_claim)
{
    start();
    hak_gate_enter(&gate);
    CHECK(hak_gate_mark(&gate));
    hak_gate_barrier();
    uint64_t before = hak_os_clock_ms();
    CHECK(!hak_gate_await(&gate, 30));
    CHECK(hak_os_clock_ms() - before >= 30);
    CHECK_EQ(hak_load_relaxed(&gate.claimed), 0);
    hak_gate_leave(&gate);
    hak_gate_enter(&gate); /* nobody is in the way */
    CHECK(hak_gate_is_nested(&gate));
}

static _Atomic int owner_steps;

static void *owner_enters(void *argument)
{
    (void)argument;
    hak_store_release(&owner_steps, 1);
    hak_gate_enter(&gate);
    hak_store_release(&owner_steps, 2);
    hak_gate_leave(&gate);
    return NULL;
}

TEST(an_owner_waits_while_a_stranger_is_inside)
{
    start();
    pthread_t owner;
    CHECK(hak_gate_mark(&gate));
    hak_gate_barrier();
    CHECK(hak_gate_await(&gate, 10));
    CHECK_EQ(pthread_create(&owner, NULL, owner_enters, NULL), 0);
    usleep(50000);
    CHECK_EQ(hak_load_acquire(&owner_steps), 1);
    hak_gate_release(&gate);
    CHECK_EQ(pthread_join(owner, NULL), 0);
    CHECK_EQ(owner_steps, 2);
}

TEST(closed_gates_let_the_owner_wait_until_they_are_opened)
{
    start();
    pthread_t owner;
    hak_gates_close();
    CHECK_EQ(pthread_create(&owner, NULL, owner_enters, NULL), 0);
    usleep(50000);
    CHECK_EQ(hak_load_acquire(&owner_steps), 1);
    hak_gates_open();
    CHECK_EQ(pthread_join(owner, NULL), 0);
    CHECK_EQ(owner_steps, 2);
}

TEST(who_forks_passes_the_gates_that_it_closed)
{
    start();
    hak_gates_close();
    hak_lock_note_all();
    hak_gate_enter(&gate);
    CHECK(hak_gate_is_nested(&gate));
    hak_gate_leave(&gate);
    hak_lock_forget_all();
    hak_gates_open();
}

TEST(an_owner_inside_is_awaited_until_a_deadline_for_all)
{
    start();
    CHECK(hak_gate_await_owner(&gate, 0));
    hak_gate_enter(&gate);
    uint64_t before = hak_os_clock_ms();
    CHECK(!hak_gate_await_owner(&gate, before + 30));
    CHECK(hak_os_clock_ms() > before + 30);
    CHECK(!hak_gate_await_owner(&gate, before)); /* at once */
}

static __attribute__((noinline)) bool is_abandoned_below(void)
{
    volatile char frame[256] = {0};
    (void)frame[0];
    return hak_gate_is_abandoned(&gate);
}

TEST(an_owner_who_waits_to_fork_is_not_awaited)
{
    start();
    hak_gate_note_fork(&gate, true);
    CHECK(!hak_gate_is_nested(&gate)); /* who is outside has nothing to note */
    hak_gate_enter(&gate);
    hak_gate_note_fork(&gate, true);
    CHECK(hak_gate_is_nested(&gate));
    CHECK(!hak_gate_await_owner(&gate, UINT64_MAX)); /* at once: for ever else */
    hak_gate_note_fork(&gate, false);
    CHECK(hak_gate_is_nested(&gate));
    CHECK(!hak_gate_await_owner(&gate, hak_os_clock_ms() + 5));
    hak_gate_leave(&gate);
    CHECK(hak_gate_await_owner(&gate, 0));
}

TEST(a_gate_is_abandoned_when_the_stack_it_was_entered_on_is_left)
{
    start();
    CHECK(!hak_gate_is_abandoned(&gate));
    hak_gate_enter(&gate);
    CHECK(!is_abandoned_below());
    CHECK(hak_gate_is_abandoned(&gate)); /* a second time from the same frame */
    hak_gate_leave(&gate);
    CHECK(!hak_gate_is_abandoned(&gate));
}
