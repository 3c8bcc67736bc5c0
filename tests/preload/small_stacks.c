/* SPDX-License-Identifier: MIT */
/* tests/preload/small_stacks.c - what hakmem does in the program's threads fits onto the smallest
 * stacks that threads may have, 16 KiB on x86-64: statistics, of the thread's own wish or not. If
 * this fails, mallinfo2 or `hakmem ctl PID dump` kills a server with small threads. */
#include "program.h"

#include "folder.h"

#include <hakmem/hakmem.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void on_small_stack(void *(*what)(void *))
{
    pthread_t thread;
    pthread_attr_t attributes;
    size_t bytes = PTHREAD_STACK_MIN;
#ifdef _SC_THREAD_STACK_MIN
    long least = sysconf(_SC_THREAD_STACK_MIN); /* more where the processor's registers are large */
    if (least > (long)bytes)
        bytes = (size_t)least;
#endif
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
    CHECK_EQ(pthread_create(&thread, &attributes, what, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void begin(void)
{
    time_limit(500);
    check_is_served();
}

static void *ask(void *argument)
{
    free(hidden(malloc(10)));
#if __GLIBC_PREREQ(2, 33)
    CHECK(mallinfo2().arena > 0);
#endif
    return argument;
}

TEST(mallinfo2_fits)
{
    begin();
    on_small_stack(ask);
}

static FILE *nowhere;

static void *describe(void *argument)
{
    CHECK_EQ(malloc_info(0, nowhere), 0);
    malloc_stats();
    return argument;
}

TEST(malloc_info_and_malloc_stats_fit)
{
    begin();
    nowhere = fopen("/dev/null", "w");
    CHECK(nowhere != NULL && dup2(fileno(nowhere), STDERR_FILENO) == STDERR_FILENO);
    fprintf(nowhere, "a stream with its buffer\n");
    on_small_stack(describe);
}

/* What does not fit is on a stack that is large, then. */
TEST(mallinfo2_needs_no_address_space)
{
    begin();
    free(hidden(malloc(10)));
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){4096, 4096}), 0);
    ask(NULL);
}

static int (*stats_get)(struct hakmem_stats *stats, size_t bytes);
static int (*residency_get)(struct hakmem_residency *residency, size_t bytes);

static void *get(void *argument)
{
    struct hakmem_stats stats;
    CHECK_EQ(stats_get(&stats, sizeof stats), 0);
    CHECK(stats.live_bytes > 0);
    return argument;
}

static void *get_residency(void *argument)
{
    struct hakmem_residency residency;
    CHECK_EQ(residency_get(&residency, sizeof residency), 0);
    CHECK(residency.live_bytes > 0);
    return argument;
}

TEST(the_functions_of_hakmem_that_tell_numbers_fit)
{
    begin();
    *(void **)&stats_get = dlsym(RTLD_DEFAULT, "hakmem_stats_get");
    *(void **)&residency_get = dlsym(RTLD_DEFAULT, "hakmem_residency_get");
    if (stats_get == NULL || residency_get == NULL)
        SKIP("this program has them not by name");
    free(hidden(malloc(10)));
    on_small_stack(get);
    on_small_stack(get_residency);
}

static void *trim(void *argument)
{
    for (size_t bytes = 1; bytes < 9000000; bytes = bytes * 3 / 2 + 1)
        free(hidden(malloc(bytes)));
    malloc_trim(0);
    return argument;
}

TEST(malloc_trim_and_large_blocks_fit)
{
    begin();
    on_small_stack(trim);
}

/* ---- without the thread's wish --------------------------------------------------------------- */

static void *end(void *argument)
{
    free(hidden(malloc(10)));
    exit(0);
    return argument;
}

PART(what_ends_by_a_small_thread)
{
    on_small_stack(end);
}

static void set_paths(void)
{
    folder_put("statistics", "");
    folder_put("profile", "");
    setenv("HAKMEM_STATS_FILE", folder_path("statistics"), 1);
}

static off_t length_of_statistics(void)
{
    struct stat about;
    CHECK_EQ(stat(getenv("HAKMEM_STATS_FILE"), &about), 0);
    return about.st_size;
}

static void run(const char *part)
{
    pid_t pid = fork();
    if (pid == 0)
        become(part);
    CHECK_CHILD_ENDS_WELL(pid, 60000);
    CHECK(length_of_statistics() > 0);
}

TEST(the_statistics_at_the_end_fit_in_every_form)
{
    static const char *const forms[] = {"text", "raw", "json", "xml", "openmetrics", "exact"};
    begin();
    set_paths();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        setenv("HAKMEM_STATS", forms[i], 1);
        CHECK_EQ(truncate(folder_path("statistics"), 0), 0);
        run("what_ends_by_a_small_thread");
    }
}

TEST(what_was_learned_is_saved_at_the_end_from_a_small_stack)
{
    begin();
    set_paths();
    setenv("HAKMEM_STATS", "raw", 1);
    setenv("HAKMEM_PROFILE", folder_path("profile"), 1);
    for (int i = 0; i < 3; i++)
        run("what_ends_by_a_small_thread");
}

static void *work_until_reported(void *argument)
{
    while (length_of_statistics() == 0)
        trim(NULL);
    return argument;
}

PART(what_reports_from_a_small_thread)
{
    on_small_stack(work_until_reported);
}

/* Without hakmem's thread the program's own print, on their slow paths. */
TEST(the_statistics_of_an_interval_fit)
{
    begin();
    set_paths();
    setenv("HAKMEM_MAINTENANCE", "off", 1);
    setenv("HAKMEM_STATS_INTERVAL", "10ms", 1);
    setenv("HAKMEM_STATS_SHM", "1", 1);
    setenv("HAKMEM_BLACKBOX", "on", 1);
    run("what_reports_from_a_small_thread");
}

static void *work_until_told(void *argument)
{
    struct pollfd asked = {STDIN_FILENO, POLLIN, 0};
    while (poll(&asked, 1, 0) == 0)
        trim(NULL);
    return argument;
}

PART(what_works_on_a_small_stack)
{
    on_small_stack(work_until_told);
}

static void check_asked(pid_t program, const char *request)
{
    char command[1024];
    snprintf(command, sizeof command, "exec %s/hakmem ctl %d %s >%s", getenv("OUT"), (int)program,
             request, folder_path("answer"));
    pid_t pid = fork();
    if (pid == 0) {
        unsetenv("LD_PRELOAD");
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    }
    CHECK_CHILD_ENDS_WELL(pid, 60000);
}

TEST(what_is_asked_from_outside_fits)
{
    static const char *const requests[] = {"dump", "trim",        "set decay=1s", "profile on",
                                           "dump", "profile off", "trim"};
    int ends[2];
    begin();
    if (getenv("OUT") == NULL || access("/dev/shm", W_OK) != 0)
        SKIP("there is no command hakmem, or no /dev/shm");
    folder_put("answer", "");
    CHECK_EQ(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[1]);
        setenv("HAKMEM_MAINTENANCE", "off", 1);
        become("what_works_on_a_small_stack");
    }
    close(ends[0]);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        check_asked(pid, requests[i]);
    close(ends[1]);
    CHECK_CHILD_ENDS_WELL(pid, 60000);
}
