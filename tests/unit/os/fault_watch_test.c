/* SPDX-License-Identifier: MIT */
/* tests/unit/os/fault_watch_test.c - when the front is in place, and over what. The rest needs the
 * names of libc's functions: tests/preload/guard_hit_preload.sh. */
#include "../../check.h"

#include "os/fault_watch.h"
#include "os/os.h"

#include <sys/mman.h>
#include <time.h>

static char *page;
static volatile int told_count, handled_count;

static bool is_watched(const void *address)
{
    return address == page;
}

static void tell(const struct os_fault *fault, bool is_fatal)
{
    told_count = told_count + 1;
    CHECK(fault->address == page && fault->access != ACCESS_EXECUTE && fault->places[0] != 0);
    CHECK(!is_fatal);
}

static const struct os_fault_watch watch = {is_watched, tell, false};

static void start(void)
{
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's, too */
    hak_os_fault_watch_start(&watch, (void *)sigaction);
}

static struct sigaction action_now(void)
{
    struct sigaction now;
    CHECK_EQ(sigaction(SIGSEGV, NULL, &now), 0);
    return now;
}

/* The kernel calls neither the program's handler nor none at once. */
static bool is_raised(void)
{
    struct sigaction now = action_now();
    return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_handler != SIG_DFL;
}

static void handle(int number)
{
    CHECK_EQ(number, SIGSEGV);
    handled_count = handled_count + 1;
    CHECK_EQ(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
}

TEST(the_front_is_installed_once_raised_and_hidden_from_queries)
{
    start();
    CHECK(!is_raised());
    hak_os_fault_watch_raise();
    CHECK(is_raised());
    hak_os_fault_watch_pause();
    CHECK(action_now().sa_handler == SIG_DFL);
    hak_os_fault_watch_raise();
    CHECK(!is_raised());
    hak_os_fault_watch_resume();
    CHECK(!is_raised());
    hak_os_fault_watch_raise();
    CHECK(is_raised());
}

TEST(a_handler_is_called_by_the_front_after_the_report)
{
    struct sigaction own = {.sa_handler = handle, .sa_flags = SA_NODEFER};
    start();
    sigaddset(&own.sa_mask, SIGUSR1);
    CHECK_EQ(sigaction(SIGSEGV, &own, NULL), 0);
    hak_os_fault_watch_raise();
    CHECK(is_raised());
    struct sigaction now = action_now();
    CHECK_EQ(now.sa_flags & (SA_NODEFER | SA_RESTART), SA_NODEFER);
    CHECK(sigismember(&now.sa_mask, SIGUSR1));
    *(volatile char *)page = 1;
    CHECK_EQ(told_count, 1);
    CHECK_EQ(handled_count, 1);
    CHECK_EQ(raise(SIGSEGV), 0);
    CHECK_EQ(told_count, 1);
    CHECK_EQ(handled_count, 2);
}

TEST(an_ignored_signal_stays_ignored)
{
    start();
    signal(SIGSEGV, SIG_IGN);
    hak_os_fault_watch_raise();
    CHECK(action_now().sa_handler == SIG_IGN);
}

TEST(an_action_that_changed_unseen_is_left_alone_for_good)
{
    start();
    hak_os_fault_watch_raise();
    signal(SIGSEGV, handle); /* nobody says that it is going to */
    hak_os_fault_watch_raise();
    CHECK(action_now().sa_handler == handle);
    signal(SIGSEGV, SIG_DFL);
    hak_os_fault_watch_raise();
    CHECK(!is_raised());
}

TEST(none_is_raised_for_a_while_after_a_library_was_loaded)
{
    start();
    hak_os_fault_watch_raise();
    hak_os_fault_watch_lower(3600000);
    hak_os_fault_watch_raise();
    CHECK(!is_raised());
    hak_os_fault_watch_lower(20);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    hak_os_fault_watch_raise();
    CHECK(is_raised());
}

TEST(it_is_gone_for_good_in_a_program_that_confines_itself)
{
    start();
    hak_os_fault_watch_raise();
    hak_os_fault_watch_end();
    CHECK(action_now().sa_handler == SIG_DFL);
    hak_os_fault_watch_raise();
    CHECK(!is_raised());
}

TEST(it_is_no_handler_of_the_programs)
{
    start();
    bool may_be = hak_os_may_be_on_signal_stack();
    hak_os_fault_watch_raise();
    CHECK(is_raised());
    CHECK_EQ(hak_os_may_be_on_signal_stack(), may_be);
}

TEST(where_nothing_handles_a_fault_the_process_dies_of_it)
{
    start();
    page = NULL; /* what is told of is tested elsewhere */
    volatile char *volatile nowhere = (volatile char *)8;
    hak_os_fault_watch_raise();
    CHECK_FAULTS(*nowhere = 1);
    CHECK_FAULTS(raise(SIGSEGV));
}
