/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/gate_test.c - marks, claims and patience, step by step. */
#include "cache/gate.h"
#include "check.h"
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
