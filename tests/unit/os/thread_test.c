/* SPDX-License-Identifier: MIT */
/* tests/unit/os/thread_test.c - a thread that libc does not know: it runs, with variables of its
 * own, gets no signal, and leaves room for the next one. */
#define _GNU_SOURCE
#include "os/thread.h"

#include "base/atomic.h"
#include "check.h"
#include "os/os.h"
#include "os/section.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct os_thread thread;
static _Atomic uint32_t stage;
static char name[16];
static uint64_t blocked;
static _Thread_local int mine = 7;
static int seen_mine, seen_errno;
static const void *seen_errno_at;

static void run(void)
{
    seen_mine = mine;
    mine = 9;
    seen_errno_at = &errno;
    seen_errno = errno;
    errno = 5;
    hak_lock_held = 0;
    hak_os_thread_name("hakmem");
    prctl(PR_GET_NAME, name);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof blocked);
    hak_store_release(&stage, 1);
    hak_os_futex_wake(&stage, 1);
    while (hak_load_acquire(&stage) == 1)
        hak_os_futex_wait(&stage, 1, 10);
}

static void end(void)
{
    hak_store_release(&stage, 2);
    hak_os_futex_wake(&stage, 1);
    while (!hak_os_thread_is_over(&thread))
        hak_os_thread_await(&thread, 1000);
}

static void start_and_await(void)
{
    hak_store_release(&stage, 0);
    CHECK(hak_os_thread_start(&thread, run, &mine));
    while (hak_load_acquire(&stage) == 0)
        hak_os_futex_wait(&stage, 0, 10);
}

/* Sanitizers know no such threads. */
static bool has_threads(void)
{
    if (HAK_OWN_THREADS_ALLOWED)
        return true;
    CHECK(!hak_os_thread_start(&thread, run, &mine));
    return false;
}

TEST(a_thread_has_variables_of_its_own_and_all_signals_blocked)
{
    uint64_t before = 0, after = 0;
    hak_os_start();
    if (!has_threads())
        return;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &before, sizeof before);
    errno = 77;
    start_and_await();
    CHECK_EQ(errno, 77);
    CHECK_EQ(mine, 7);
    CHECK_EQ(seen_mine, 0); /* all zero, whatever the program has there */
    CHECK_EQ(seen_errno, 0);
    CHECK(seen_errno_at != &errno);
    CHECK(strcmp(name, "hakmem") == 0);
    if (is_emulated())
        blocked |= 3ull << 62; /* the last two are qemu-user's own */
    CHECK_EQ(blocked | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1), ~0ull);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &after, sizeof after);
    CHECK_EQ(before, after);
    CHECK(!hak_os_thread_is_over(&thread));
    end();
}

TEST(a_place_serves_one_thread_after_another)
{
    hak_os_start();
    if (!has_threads())
        return;
    start_and_await();
    const char *area = thread.area;
    for (int i = 0; i < 1000; i++) {
        end();
        start_and_await();
    }
    end();
    CHECK(thread.area == area);
}

static void live_as_child(void)
{
    hak_os_thread_forget(&thread);
    CHECK(hak_os_thread_is_over(&thread));
    start_and_await();
    CHECK_EQ(seen_mine, 0);
    end();
}

TEST(a_child_has_no_thread_and_can_have_one_in_the_same_place)
{
    if (is_emulated())
        SKIP("in a child of a process with threads qemu-user starts none by clone");
    hak_os_start();
    if (!has_threads())
        return;
    start_and_await();
    CHECK_EXITS(live_as_child(), 0);
    end();
}

static int seen_policy = -1;

static void look_at_policy(void)
{
    hak_os_thread_be_ordinary();
    seen_policy = (int)syscall(SYS_sched_getscheduler, 0);
}

static void check_policy(int expected)
{
    CHECK(hak_os_thread_start(&thread, look_at_policy, &mine));
    while (!hak_os_thread_is_over(&thread))
        hak_os_thread_await(&thread, 1000);
    CHECK_EQ(seen_policy, expected);
}

TEST(a_thread_is_ordinary_though_its_maker_is_not)
{
    struct sched_param first = {.sched_priority = 1};
    hak_os_start();
    if (!has_threads())
        return;
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        SKIP("no thread may be anything else here");
    check_policy(SCHED_OTHER);
}

TEST(a_thread_of_a_process_for_idle_times_is_no_more_than_that)
{
    static const int policies[] = {SCHED_BATCH, SCHED_IDLE};
    const struct sched_param none = {.sched_priority = 0};
    hak_os_start();
    if (!has_threads())
        return;
    for (unsigned i = 0; i < 2; i++) {
        if (sched_setscheduler(0, policies[i], &none) != 0)
            SKIP("no thread may be anything else here");
        check_policy(policies[i]);
    }
}
