/* SPDX-License-Identifier: MIT */
/* tests/unit/os/output_test.c - what a write meets is told, and raises no signal. */
#include "os/output.h"

#include "check.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>

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

/* No test says how much fits into a pipe: less than this. */
#define MUCH_BYTES (4u << 20)
static char much[MUCH_BYTES];
static int ends_of_pipe[2];

static ssize_t drain(void)
{
    static char taken[MUCH_BYTES];
    return read(ends_of_pipe[0], taken, sizeof taken);
}

/* A pipe that is full; the test reads from it without waiting. */
static struct os_kept_fd full_pipe(void)
{
    CHECK(pipe(ends_of_pipe) == 0);
    fcntl(ends_of_pipe[0], F_SETFL, O_NONBLOCK);
    fcntl(ends_of_pipe[1], F_SETFL, O_NONBLOCK);
    while (write(ends_of_pipe[1], much, sizeof much) > 0)
        continue;
    while (write(ends_of_pipe[1], much, 1) > 0)
        continue;
    fcntl(ends_of_pipe[1], F_SETFL, 0);
    return hak_os_kept_fd(ends_of_pipe[1]);
}

/* How long such a write took. */
static uint64_t refused_ms(const struct os_kept_fd *kept)
{
    uint64_t start_ms = hak_os_clock_ms();
    CHECK_EQ(hak_os_output_write_kept(kept, "text", 4), EAGAIN);
    return hak_os_clock_ms() - start_ms;
}

static uint64_t least_refused_ms(const struct os_kept_fd *kept)
{
    uint64_t least_ms = UINT64_MAX;
    for (int i = 0; i < 10; i++) {
        uint64_t took_ms = refused_ms(kept);
        least_ms = took_ms < least_ms ? took_ms : least_ms;
    }
    return least_ms;
}

TEST(a_reader_that_takes_nothing_is_given_up_and_waited_for_once)
{
    struct os_kept_fd kept = full_pipe();
    errno = 77;
    uint64_t first_ms = refused_ms(&kept);
    CHECK(least_refused_ms(&kept) < first_ms / 4);
    CHECK_EQ(hak_os_output_write(kept.fd, "text", 4), EAGAIN);
    CHECK_EQ(errno, 77);
    /* Once it takes something it is worth waiting for again. */
    CHECK(drain() > 0);
    CHECK_EQ(hak_os_output_write_kept(&kept, "text", 4), 0);
    CHECK_EQ(hak_os_output_write_kept(&kept, much, MUCH_BYTES), EAGAIN);
    CHECK(least_refused_ms(&kept) < first_ms / 4);
}

static volatile ssize_t drained_bytes;

static void on_alarm(int number)
{
    (void)number;
    ssize_t bytes = drain();
    drained_bytes += bytes > 0 ? bytes : 0;
}

/* Its reader is a handler of the thread that waits. */
TEST(while_a_write_waits_signals_come_through_and_a_slow_reader_gets_all)
{
    struct os_kept_fd kept = full_pipe();
    CHECK(drain() > 0);
    signal(SIGALRM, on_alarm);
    struct itimerval often = {{0, 10000}, {0, 10000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    CHECK_EQ(hak_os_output_write_kept(&kept, much, MUCH_BYTES), 0);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    on_alarm(SIGALRM);
    CHECK_EQ(drained_bytes, MUCH_BYTES);
}
