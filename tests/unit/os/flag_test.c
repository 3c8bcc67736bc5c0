/* SPDX-License-Identifier: MIT */
/* tests/unit/os/flag_test.c - a thread waits for a flag, but not for ever. */
#include "os/flag.h"

#include "check.h"
#include "threads.h"

static _Atomic uint32_t flag;
static _Atomic uint32_t wanted;

TEST(a_flag_that_is_not_given_back_is_not_waited_for_for_ever)
{
    CHECK(hak_flag_await(&flag));
    CHECK(!hak_flag_await(&flag));
    CHECK(!hak_flag_await_second(&flag));
    hak_flag_give(&flag);
    CHECK(hak_flag_await_second(&flag));
}

static void *give(void *argument)
{
    while (hak_load_acquire(&wanted) == 0)
        hak_os_yield();
    hak_flag_give(&flag);
    return argument;
}

TEST(a_flag_that_another_thread_gives_back_is_taken)
{
    CHECK(hak_flag_await(&flag));
    pthread_t thread = start_thread(give, NULL);
    hak_store_release(&wanted, 1);
    CHECK(hak_flag_await_second(&flag));
    join_thread(thread);
}
