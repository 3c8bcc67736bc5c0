/* SPDX-License-Identifier: MIT */
/* tests/unit/process/background_test.c - the background thread starts when it is due, keeps to its
 * stack, and ends for a pause. */
#include "process/background.h"

#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "conf/conf.h"
#include "faults.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "os/thread.h"
#include "stats/writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK_BYTES (8 * HAK_MIB)
#define COUNT 12

static bool is_running(void)
{
    return !hak_os_thread_is_over(hak_background_thread(0)) ||
           !hak_os_thread_is_over(hak_background_thread(1));
}

static void work(void)
{
    void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = hak_malloc(BLOCK_BYTES);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, BLOCK_BYTES);
    }
    for (int i = 0; i < COUNT; i++)
        hak_free(blocks[i]);
}

static bool runs_soon(void)
{
    for (int i = 0; i < 3000 && !is_running(); i++) {
        work();
        usleep(1000);
    }
    return is_running();
}

TEST(it_ends_for_a_pause_and_none_starts_until_the_end_of_it)
{
    if (!HAK_OWN_THREADS_ALLOWED) {
        work();
        CHECK(!is_running());
        return;
    }
    for (int i = 0; i < 50; i++) {
        CHECK(runs_soon());
        hak_background_pause();
        CHECK(!is_running());
        work();
        CHECK(!is_running());
        hak_background_pause(); /* pauses of several threads overlap */
        hak_background_resume();
        CHECK(!is_running());
        hak_background_resume();
        CHECK(is_running());
    }
}

/* Its stack begins behind a guard page, all zero at first, and is used from its end. */
static size_t stack_used_bytes(void)
{
    const char *stack = hak_background_thread(0)->area + hak_os_page_bytes();
    size_t unused_bytes = 0;
    while (unused_bytes < HAK_THREAD_STACK_BYTES && stack[unused_bytes] == 0)
        unused_bytes++;
    return HAK_THREAD_STACK_BYTES - unused_bytes;
}

/* The deepest that it does: reports in every form, shown and written, beside its work. */
TEST(it_needs_less_than_half_of_its_stack)
{
    if (!HAK_OWN_THREADS_ALLOWED) {
        CHECK(!is_running());
        return;
    }
    static const char *const forms[] = {"text", "raw", "json", "xml", "openmetrics"};
    dup2(open("/dev/null", O_WRONLY), 2);
    for (int i = 0; i < 5; i++) {
        char setting[128];
        snprintf(setting, sizeof setting,
                 "stats:%s,stats_interval:10ms,stats_file:/dev/null,stats_shm:on", forms[i]);
        hak_conf_read_packed(setting, CONF_PACKED);
        CHECK(runs_soon());
        uint64_t until = hak_os_clock_ms() + 400;
        while (hak_os_clock_ms() < until)
            work();
    }
    CHECK(stack_used_bytes() > 0);
    CHECK(stack_used_bytes() < HAK_THREAD_STACK_BYTES / 2);
}

static pid_t copy_pid = -1;
static bool was_raised, was_interrupted;

static void copy_in_handler(int number)
{
    (void)number;
    copy_pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static void raise_once(void)
{
    hak_store_relaxed(&hak_os_fault.watch, NULL);
    was_raised = true;
    raise(SIGUSR1);
    was_interrupted = copy_pid != -1;
}

static unsigned running_count(void)
{
    return !hak_os_thread_is_over(hak_background_thread(0)) +
           !hak_os_thread_is_over(hak_background_thread(1));
}

static unsigned task_count(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (const struct dirent *i; (i = readdir(tasks)) != NULL;)
        count += i->d_name[0] != '.';
    closedir(tasks);
    return count;
}

TEST(no_handler_copies_the_process_in_the_middle_of_its_start)
{
    need_faults();
    if (!HAK_OWN_THREADS_ALLOWED)
        SKIP("this build has no thread of its own");
    signal(SIGUSR1, copy_in_handler);
    for (int i = 0; i < 100 && !was_raised; i++) { /* it may have ended by itself before a pause */
        CHECK(runs_soon());
        hak_background_pause();
        hak_store_relaxed(&hak_os_fault.watch, raise_once);
        hak_background_resume(); /* which starts it */
        hak_store_relaxed(&hak_os_fault.watch, NULL);
    }
    work();                                    /* the copy notices that it is one */
    CHECK(!was_interrupted && copy_pid != -1); /* the signal waited for the end of it */
    if (copy_pid == 0) {
        CHECK_EQ(task_count(), 1 + running_count());
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(copy_pid, &status, 0), copy_pid);
    CHECK_EQ(status, 0);
}
