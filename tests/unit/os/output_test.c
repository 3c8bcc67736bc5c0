/* SPDX-License-Identifier: MIT */
/* tests/unit/os/output_test.c - what a write meets is told, and raises no signal. */
#include "os/output.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

TEST(a_full_disk_is_reported)
{
    int fd = hak_os_output_open("/dev/full");
    CHECK(fd >= 0);
    errno = 77;
    CHECK_EQ(hak_os_output_write(fd, "text", 4), ENOSPC);
    CHECK_EQ(errno, 77);
    CHECK_STR(hak_os_error_name(ENOSPC), "no space left");
}

TEST(a_file_that_cannot_be_opened_is_reported)
{
    errno = 77;
    CHECK_EQ(hak_os_output_open("/"), -EISDIR);
    CHECK_EQ(hak_os_output_open("/none/such"), -ENOENT);
    CHECK_EQ(errno, 77);
    CHECK_STR(hak_os_error_name(12345), "an error");
}

TEST(a_file_is_made_only_where_there_is_none)
{
    char path[] = "/tmp/output_test.XXXXXX";
    close(mkstemp(path));
    errno = 77;
    CHECK_EQ(hak_os_output_create(path), -EEXIST);
    unlink(path);
    CHECK_EQ(symlink("/tmp/output_test.nowhere", path), 0);
    CHECK_EQ(hak_os_output_create(path), -EEXIST);
    unlink(path);
    CHECK_EQ(hak_os_output_create("/none/such"), -ENOENT);
    CHECK_EQ(errno, 77);
    int fd = hak_os_output_create(path);
    struct stat about;
    CHECK(fd > 2 && fstat(fd, &about) == 0);
    CHECK_EQ(about.st_mode & 0777, 0600);
    CHECK_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    unlink(path);
}

TEST(a_file_is_no_standard_descriptor_and_closed_by_exec)
{
    for (int low = 0; low < 2; low++) {
        if (low)
            setrlimit(RLIMIT_NOFILE, &(struct rlimit){20, 20});
        close(STDIN_FILENO);
        int fd = hak_os_output_open("/dev/null");
        CHECK(fd >= (low ? 3 : 100));
        CHECK_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        CHECK_EQ(fcntl(STDIN_FILENO, F_GETFD), -1);
    }
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
    CHECK_EQ(hak_os_output_open("/dev/null"), -EMFILE);
    CHECK_EQ(fcntl(STDIN_FILENO, F_GETFD), -1);
}

TEST(a_descriptor_that_now_refers_to_another_file_is_not_written_to)
{
    char path[] = "/tmp/output_test.XXXXXX";
    struct stat about;
    int fd = mkstemp(path);
    int full = open("/dev/full", O_WRONLY);
    struct os_kept_fd kept = hak_os_kept_fd(full);
    CHECK_EQ(hak_os_output_write_kept(&kept, "text", 4), ENOSPC);
    CHECK_EQ(dup2(fd, full), full);
    CHECK_EQ(hak_os_output_write_kept(&kept, "text", 4), EBADF);
    CHECK(stat(path, &about) == 0);
    CHECK_EQ(about.st_size, 0);
    unlink(path);
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

TEST(a_size_limit_is_reported)
{
    char path[] = "/tmp/output_test.XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){2, 2});
    CHECK(fd >= 0);
    CHECK_EQ(hak_os_output_write(fd, "text", 4), EFBIG);
}
