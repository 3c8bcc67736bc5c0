/* SPDX-License-Identifier: MIT */
/* tests/unit/os/thread_test.c - a thread of our own: it runs, has a name, and gets no signal;
 * and libc tells whether there are threads. */
#include "os/thread.h"

#include "base/atomic.h"
#include "check.h"
#include "os/os.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

static _Atomic uint32_t stage;
static char name[16];
static sigset_t blocked;

static void *run(void *argument)
{
    CHECK(argument == NULL);
    hak_os_thread_name("hakmem");
    prctl(PR_GET_NAME, name);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    hak_store_release(&stage, 1);
    hak_os_futex_wake(&stage, 1);
    return NULL;
}

static void await_stage(void)
{
    while (hak_load_acquire(&stage) == 0)
        hak_os_futex_wait(&stage, 0, 10);
}

TEST(a_thread_runs_with_all_signals_blocked_and_the_starter_keeps_its_own)
{
    sigset_t before, after;
    sigprocmask(SIG_BLOCK, NULL, &before);
    errno = 77;
    CHECK(hak_os_thread_start(run));
    CHECK_EQ(errno, 77);
    await_stage();
    CHECK(strcmp(name, "hakmem") == 0);
    CHECK(sigismember(&blocked, SIGTERM) == 1);
    CHECK(sigismember(&blocked, SIGINT) == 1);
    CHECK(sigismember(&blocked, SIGPROF) == 1);
    sigprocmask(SIG_BLOCK, NULL, &after);
    CHECK(sigismember(&after, SIGTERM) == sigismember(&before, SIGTERM));
}

TEST(a_process_is_single_threaded_until_its_first_thread)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
    CHECK(hak_os_is_single_threaded());
#endif
    CHECK(hak_os_thread_start(run));
    CHECK(!hak_os_is_single_threaded());
    await_stage();
}
