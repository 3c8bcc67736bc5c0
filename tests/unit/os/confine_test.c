/* SPDX-License-Identifier: MIT */
/* tests/unit/os/confine_test.c - before a program confines itself hakmem gets ready; afterwards it
 * asks nothing more. */
#define _GNU_SOURCE
#include "os/confine.h"

#include "check.h"
#include "faults.h"
#include "os/node.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "threads.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static int preparations;
static bool was_confined;

static void prepare(void)
{
    preparations++;
    was_confined = hak_os_is_confined();
    errno = 5;
}

TEST(it_gets_ready_once_before_it_is_confined)
{
    hak_os_on_confinement(prepare);
    CHECK(!hak_os_is_confined());
    errno = 77;
    hak_os_confine();
    hak_os_confine();
    CHECK_EQ(errno, 77);
    CHECK(hak_os_is_confined());
    CHECK_EQ(preparations, 1);
    CHECK(!was_confined);
}

static void on_signal(int number)
{
    (void)number;
}

TEST(calls_allowed_before_confinement_are_not_made_after_it)
{
    hak_os_start();
    signal(SIGUSR1, on_signal);
    CHECK(!hak_os_may_be_on_signal_stack());
    CHECK(hak_os_ask_begin());
    hak_os_ask_end();
    hak_os_confine();
    CHECK(!hak_os_ask_begin());
    CHECK(hak_os_may_be_on_signal_stack()); /* nobody knows: nothing is taken for left */
}

TEST(a_confined_thread_is_taken_to_run_on_the_first_node)
{
    need_faults();
    hak_store_relaxed(&hak_os_fault.node_count, 4);
    hak_store_relaxed(&hak_os_fault.node, 3);
    CHECK_EQ(hak_os_node(), 3);
    hak_os_confine();
    CHECK_EQ(hak_os_node(), 0);
}

static _Atomic int has_asked;

static void *ask(void *argument)
{
    CHECK(hak_os_ask_begin());
    has_asked = 1;
    usleep(50000);
    has_asked = 2;
    hak_os_ask_end();
    return argument;
}

TEST(threads_in_such_a_call_finish_it_before_the_filter_comes)
{
    pthread_t thread = start_thread(ask, NULL);
    while (has_asked == 0)
        usleep(100);
    hak_os_confine();
    CHECK_EQ(has_asked, 2);
    join_thread(thread);
}

TEST(a_thread_that_never_finishes_is_not_waited_for_forever)
{
    CHECK(hak_os_ask_begin());
    hak_os_confine();
    CHECK(hak_os_is_confined());
    hak_os_ask_reset();
    CHECK(!hak_os_ask_begin());
}

TEST(a_child_is_confined_as_its_parent_is)
{
    hak_os_confine();
    CHECK_EXITS(_exit(hak_os_is_confined() ? 3 : 4), 3);
}
