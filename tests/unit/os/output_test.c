/* SPDX-License-Identifier: MIT */
/* tests/unit/os/output_test.c - what a write meets is told, and raises no signal. */
#include "os/output.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>

TEST(a_full_disk_is_told)
{
    int fd = hak_os_output_open("/dev/full");
    CHECK(fd >= 0);
    errno = 77;
    CHECK_EQ(hak_os_output_write(fd, "text", 4), ENOSPC);
    CHECK_EQ(errno, 77);
    CHECK_STR(hak_os_error_name(ENOSPC), "no space left");
}

TEST(what_cannot_be_opened_is_told)
{
    errno = 77;
    CHECK_EQ(hak_os_output_open("/"), -EISDIR);
    CHECK_EQ(hak_os_output_open("/none/such"), -ENOENT);
    CHECK_EQ(errno, 77);
    CHECK_STR(hak_os_error_name(12345), "an error");
}

TEST(a_pipe_without_a_reader_raises_no_signal)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    close(ends[0]);
    CHECK_EQ(hak_os_output_write(ends[1], "text", 4), EPIPE);
    sigset_t pending;
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGPIPE));
}

TEST(a_signal_that_waited_before_still_waits)
{
    int ends[2];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGPIPE);
    CHECK(pipe(ends) == 0);
    close(ends[0]);
    CHECK_EQ(hak_os_output_write(ends[1], "text", 4), EPIPE);
    sigpending(&set);
    CHECK(sigismember(&set, SIGPIPE));
}

TEST(a_size_limit_is_told)
{
    char path[] = "/tmp/output_test.XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){2, 2});
    CHECK(fd >= 0);
    CHECK_EQ(hak_os_output_write(fd, "text", 4), EFBIG);
}
