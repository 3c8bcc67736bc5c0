/* SPDX-License-Identifier: MIT */
/* tests/preload/quiet.c - hakmem prints nothing unless it is asked to, also where things go wrong
 * that are not the program's fault. If this fails, cron sends mails, and scripts that read stderr
 * break. */
#include "program.h"

static void *allocate_and_end(void *argument)
{
    free(argument);
    for (size_t i = 1; i < 100000; i = i * 3 / 2 + 1)
        free(hidden(malloc(i)));
    return hidden(malloc(100));
}

/* Everything that could be remarkable and is not misuse. */
static void do_what_is_remarkable(void)
{
    void *result;
    char *block = malloc(10 << 20);
    memset(block, 1, 10 << 20);
    free(block);
    free(NULL);
    free(hidden(malloc(0)));
    free(hidden(malloc((size_t)hidden((void *)SIZE_MAX))));
    free(hidden(malloc((size_t)hidden((void *)((size_t)1 << 46)))));
    free(hidden(calloc((size_t)hidden((void *)SIZE_MAX), 2)));
    free(hidden(aligned_alloc((size_t)hidden((void *)3), 100)));
    if (posix_memalign(&result, 1 << 20, 5) == 0)
        free(result);
    for (unsigned i = 0; i < 20; i++)
        free(in_thread(allocate_and_end, malloc(i)));
    pid_t pid = fork();
    if (pid == 0)
        exit(0);
    waitpid(pid, NULL, 0);
}

static void check_silence(int fd)
{
    int pipe_fds[2];
    CHECK_EQ(pipe(pipe_fds), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        dup2(pipe_fds[1], fd);
        close(pipe_fds[0]);
        close(pipe_fds[1]);
        become("what_is_remarkable");
    }
    close(pipe_fds[1]);
    char said[1024];
    ssize_t got = read(pipe_fds[0], said, sizeof said - 1);
    close(pipe_fds[0]);
    CHECK_CHILD_ENDS_WELL(pid, 60000);
    if (got != 0)
        CHECK_FAILED("on fd %d: \"%.*s\"", fd, (int)(got < 0 ? 0 : got), said);
}

PART(what_is_remarkable)
{
    check_is_served();
    do_what_is_remarkable();
}

TEST(nothing_is_printed_on_stdout)
{
    time_limit(300);
    check_silence(STDOUT_FILENO);
}

TEST(nothing_is_printed_on_stderr)
{
    time_limit(300);
    check_silence(STDERR_FILENO);
}
