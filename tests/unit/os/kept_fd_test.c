/* SPDX-License-Identifier: MIT */
/* tests/unit/os/kept_fd_test.c - a descriptor is what it was, or is not written to. */
#include "os/stderr.h"

#include "check.h"

#include <errno.h>

/* A pipe in place of standard error; its end to read from. */
static int have_pipe(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK_EQ(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return ends[0];
}

/* How many bytes of a text arrive in the pipe. */
static ssize_t say(int pipe_fd)
{
    char text[64];
    hak_os_stderr_write("said", 4);
    ssize_t got = read(pipe_fd, text, sizeof text);
    return got < 0 ? 0 : got;
}

TEST(a_file_is_the_same_under_another_number_and_after_it_was_closed_in_between)
{
    int fd = open("/dev/null", O_WRONLY);
    struct os_kept_fd kept = hak_os_kept_fd(fd);
    errno = 77;
    CHECK(kept.fd == fd && hak_os_kept_is_same(&kept));
    close(fd);
    CHECK(!hak_os_kept_is_same(&kept));
    CHECK_EQ(open("/dev/full", O_WRONLY), fd);
    CHECK(!hak_os_kept_is_same(&kept));
    close(fd);
    CHECK_EQ(open("/dev/null", O_WRONLY), fd);
    CHECK(hak_os_kept_is_same(&kept));
    CHECK_EQ(errno, 77);
}

TEST(a_closed_descriptor_is_no_file)
{
    errno = 77;
    struct os_kept_fd kept = hak_os_kept_fd(999);
    CHECK_EQ(kept.fd, -1);
    CHECK(!hak_os_kept_is_same(&kept));
    CHECK_EQ(hak_os_kept_copy(999), -1);
    CHECK_EQ(errno, 77);
}

TEST(two_pipes_are_two_files)
{
    int ends[2], others[2];
    CHECK(pipe(ends) == 0 && pipe(others) == 0);
    struct os_kept_fd kept = hak_os_kept_fd(ends[1]);
    CHECK(hak_os_kept_is_same(&kept));
    CHECK_EQ(dup2(others[1], ends[1]), ends[1]);
    CHECK(!hak_os_kept_is_same(&kept));
}

TEST(standard_error_is_the_file_of_process_start)
{
    int first = have_pipe();
    hak_os_stderr_note();
    CHECK_EQ(say(first), 4);
    int second = have_pipe();
    hak_os_stderr_start(); /* as in the child of a fork: it is the same start */
    CHECK(hak_os_stderr() == NULL);
    CHECK_EQ(hak_os_stderr_write("said", 4), EBADF);
    CHECK_EQ(say(second), 0);
    CHECK_EQ(say(first), 0);
}

TEST(a_descriptor_closed_at_the_start_stays_unused)
{
    close(STDERR_FILENO);
    hak_os_stderr_note();
    hak_os_stderr_keep();
    int later = have_pipe();
    CHECK_EQ(say(later), 0);
}

TEST(a_copy_says_it_where_it_was)
{
    int first = have_pipe();
    hak_os_stderr_note();
    hak_os_stderr_keep();
    int copy = hak_os_stderr()->fd;
    CHECK(copy >= 100);
    CHECK_EQ(fcntl(copy, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    hak_os_stderr_keep(); /* of which one is enough */
    CHECK_EQ(hak_os_stderr()->fd, copy);
    CHECK_EQ(fcntl(copy + 1, F_GETFD), -1);
    int second = have_pipe();
    CHECK_EQ(say(first), 4);
    CHECK_EQ(say(second), 0);
}

TEST(where_the_copy_is_another_file_standard_error_serves)
{
    int first = have_pipe();
    hak_os_stderr_note();
    hak_os_stderr_keep();
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK(dup2(ends[1], hak_os_stderr()->fd) >= 100);
    CHECK_EQ(hak_os_stderr()->fd, STDERR_FILENO);
    CHECK_EQ(say(first), 4);
    have_pipe();
    CHECK(hak_os_stderr() == NULL);
}

TEST(a_descriptor_that_changed_before_it_was_kept_is_not_kept)
{
    have_pipe();
    hak_os_stderr_note();
    int second = have_pipe();
    hak_os_stderr_keep();
    CHECK_EQ(say(second), 0);
}
