/* SPDX-License-Identifier: MIT */
/* tests/preload/descriptors.c - the table of descriptors is the program's: hakmem's thread opens
 * files, and uses a table of its own for that, in which nothing of the program's is kept open. If
 * this fails, a daemon's close(0) and open() return another number, close_range() and socketpair()
 * a socket that hakmem closes, or the reader of a pipe waits for ever. */
#include "program.h"

#include "folder.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/syscall.h>

#define BLOCKS 200000
#define CLOSE_RANGE_TO_UNSHARE 2u
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Much is free, and stays warm for a while: the thread has work. */
static void have_a_thread(void)
{
    static char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(1000);
        memset(blocks[i], 1, 1000);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % 100 != 0)
            free(blocks[i]);
}

/* Large blocks too: slow paths, at which a thread is started that is due. */
static void work(void)
{
    for (size_t bytes = 1; bytes < 2000000; bytes = bytes * 3 / 2 + 1)
        free(hidden(malloc(bytes)));
}

/* The number of hakmem's thread; 0: there is none at this moment. */
static int find_thread(void)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        int fd = open(path, O_RDONLY);
        if (fd >= 0 && read(fd, name, sizeof name - 1) > 0 && strcmp(name, "hakmem\n") == 0)
            found = atoi(task->d_name);
        if (fd >= 0)
            close(fd);
    }
    closedir(tasks);
    return found;
}

/* True when the number 2 is in the thread's table; -1: there is no such thread any more. */
static int has_standard_error(int thread)
{
    char path[64], target[16];
    snprintf(path, sizeof path, "/proc/self/task/%d", thread);
    if (thread == 0 || access(path, F_OK) != 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/fd/2", thread);
    return readlink(path, target, sizeof target) >= 0;
}

/* Returns with the thread at work. It has its name only after it has its table. */
static int await_thread(void)
{
    for (;;) {
        int thread = find_thread();
        if (has_standard_error(thread) >= 0)
            return thread;
        have_a_thread();
        work();
    }
}

/* In a child: is there such a call? */
static void need_tables(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_TO_UNSHARE) != 0);
    int status = status_within(pid, 60000);
    if (status != 0)
        SKIP("this kernel gives a thread no empty table");
}

static void begin(void)
{
    time_limit(500);
    check_is_served();
    if (has_value("HAKMEM_MAINTENANCE", "off"))
        SKIP("there is no thread");
    need_tables();
}

TEST(the_thread_has_none_of_the_programs_descriptors)
{
    begin();
    for (int i = 0; i < 20; i++)
        CHECK(has_standard_error(await_thread()) != 1);
}

TEST(the_thread_keeps_no_end_of_a_pipe_open)
{
    begin();
    for (int i = 0; i < 20; i++) {
        int ends[2];
        char byte;
        CHECK_EQ(pipe(ends), 0);
        int thread = await_thread();
        close(ends[1]);
        struct pollfd asked = {ends[0], POLLIN, 0};
        CHECK_EQ(poll(&asked, 1, 60000), 1); /* an end that was in passing there is gone then */
        CHECK_EQ(read(ends[0], &byte, 1), 0);
        close(ends[0]);
        CHECK(has_standard_error(thread) != 1);
    }
}

static bool is_locked_for_others(const char *path)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR);
        _exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 0 : 1);
    }
    return status_within(pid, 60000) == 0;
}

TEST(record_locks_of_the_program_outlive_the_start_and_the_end_of_the_thread)
{
    begin();
    folder_put("locked", "data");
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(folder_path("locked"), O_RDWR);
    CHECK(fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0);
    for (int i = 0; i < 10; i++) {
        await_thread();
        CHECK(is_locked_for_others(folder_path("locked")));
        CHECK_EQ(setuid(getuid()), 0); /* which ends the thread of libhakmem.so */
        CHECK(is_locked_for_others(folder_path("locked")));
    }
}

TEST(a_number_that_the_program_closed_is_the_next_that_it_gets)
{
    begin();
    for (int i = 0; i < 20; i++) {
        await_thread();
        uint64_t until = now_ms() + 50;
        while (now_ms() < until) {
            close(0);
            CHECK_EQ(open("/dev/null", O_RDWR), 0);
        }
    }
}

PART(what_reports_while_it_works)
{
    for (int i = 0; i < 20; i++)
        CHECK(await_thread() != 0);
}

static bool has_report(const char *path)
{
    char text[4096] = "";
    int fd = open(path, O_RDONLY);
    bool has = fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strstr(text, "live_bytes: ");
    close(fd);
    return has;
}

/* It writes by the descriptors that are open from the start on, so it has the program's. */
TEST(the_thread_reports_each_interval_to_the_file_that_is_named)
{
    begin();
    folder_put("statistics", "");
    pid_t pid = fork();
    if (pid == 0) {
        setenv("HAKMEM_STATS_FILE", folder_path("statistics"), 1);
        setenv("HAKMEM_STATS_INTERVAL", "10ms", 1);
        setenv("HAKMEM_STATS", "raw", 1);
        become("what_reports_while_it_works");
    }
    CHECK_CHILD_ENDS_WELL(pid, 60000);
    CHECK(has_report(folder_path("statistics")));
}
