/* SPDX-License-Identifier: MIT */
/* tests/unit/os/copy_mark_test.c - a copy of the process notices that it is one. */
#define _GNU_SOURCE
#include "base/limits.h"
#include "check.h"
#include "os/copy_mark.h"
#include "os/os.h"
#include "threads.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int settled_count;

static void settle(void)
{
    settled_count++;
    usleep(20000); /* so that others come meanwhile */
}

/* Emulators of user programs clear no page in a copy. */
static bool are_copies_told(void)
{
    static _Alignas(HAK_GRANULE_BYTES) char page[HAK_GRANULE_BYTES];
    return hak_os_is_advised(page);
}

static void start(void)
{
    hak_os_start();
    hak_copy_mark_start(settle);
    CHECK(!hak_copy_is_unnoticed());
}

/* What waits for the child; a child that fails a check ends otherwise. */
static void expect_end(pid_t pid)
{
    int status = -1;
    CHECK(pid > 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

static pid_t copy(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

TEST(a_raw_copy_is_noticed_and_settled_once)
{
    start();
    if (!are_copies_told())
        SKIP("nothing tells copies here");
    hak_store_relaxed(&hak_copy_mark->is_printing, 1);
    pid_t pid = copy();
    if (pid == 0) {
        bool was_unnoticed = hak_copy_is_unnoticed();
        bool was_cleared = hak_load_relaxed(&hak_copy_mark->is_printing) == 0;
        hak_copy_look();
        hak_copy_look();
        _exit(was_unnoticed && was_cleared && settled_count == 1 ? 0 : 1);
    }
    expect_end(pid);
    CHECK(!hak_copy_is_unnoticed());
    CHECK_EQ(hak_load_relaxed(&hak_copy_mark->is_printing), 1);
    CHECK_EQ(settled_count, 0);
}

TEST(a_copy_of_a_copy_is_noticed_whether_that_one_was_settled_or_not)
{
    start();
    if (!are_copies_told())
        SKIP("nothing tells copies here");
    pid_t pid = copy();
    if (pid == 0) {
        pid_t first = copy();
        if (first == 0)
            _exit(hak_copy_is_unnoticed() ? 0 : 1);
        expect_end(first);
        hak_copy_look();
        pid_t second = copy();
        if (second == 0)
            _exit(hak_copy_is_unnoticed() ? 0 : 1);
        expect_end(second);
        _exit(0);
    }
    expect_end(pid);
}

TEST(the_child_of_a_vfork_is_no_copy)
{
    start();
    pid_t pid = vfork();
    if (pid == 0)
        _exit(hak_copy_is_unnoticed());
    expect_end(pid);
}

static void *look(void *unused)
{
    hak_copy_look();
    return settled_count == 1 && !hak_copy_is_unnoticed() ? NULL : unused;
}

TEST(threads_that_notice_together_settle_once_and_all_wait_for_it)
{
    start();
    if (!are_copies_told())
        SKIP("nothing tells copies here");
    pid_t pid = copy();
    if (pid == 0) {
        pthread_t threads[4];
        bool is_right = true;
        start_threads(threads, 4, look);
        for (int i = 0; i < 4; i++)
            is_right &= join_thread(threads[i]) == NULL;
        _exit(is_right && settled_count == 1 ? 0 : 1);
    }
    expect_end(pid);
}

TEST(a_child_of_fork_clears_and_settles_it_itself)
{
    start();
    pid_t pid = fork();
    if (pid == 0) {
        hak_copy_mark_clear();
        bool was_unnoticed = hak_copy_is_unnoticed();
        hak_copy_mark_settled();
        _exit(was_unnoticed && !hak_copy_is_unnoticed() && settled_count == 0 ? 0 : 1);
    }
    expect_end(pid);
}

/* As before Linux 4.14, or before the start. */
TEST(without_its_page_the_mark_is_cleared_by_fork_only)
{
    CHECK(!hak_copy_is_unnoticed());
    pid_t pid = copy();
    if (pid == 0) {
        bool was_noticed = hak_copy_is_unnoticed();
        hak_copy_mark_clear();
        _exit(!was_noticed && hak_copy_is_unnoticed() ? 0 : 1);
    }
    expect_end(pid);
}
