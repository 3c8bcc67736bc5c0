/* SPDX-License-Identifier: MIT */
/* tests/unit/os/descriptors_test.c - hakmem's own thread has an empty table of descriptors, and
 * reaches the program's standard error all the same. */
#include "os/descriptors.h"

#include "base/atomic.h"
#include "check.h"
#include "folder.h"
#include "os/kept_fd.h"
#include "os/os.h"
#include "os/stderr.h"
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE "hakmem: a message\n"

static struct os_thread thread;
static _Thread_local int mine;
static bool has_parted, is_apart, is_empty;
static int first_number, borrowed, errno_then, errors[2];

static void part(void)
{
    errno = 77;
    has_parted = hak_os_descriptors_part();
    is_apart = hak_os_descriptors_are_apart();
    is_empty = fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0;
    errno = 77;
    borrowed = hak_os_descriptors_borrow(2);
    hak_os_close(borrowed);
    errors[0] = hak_os_stderr_write(MESSAGE, strlen(MESSAGE));
    errno_then = errno;
    first_number = open("/dev/null", O_RDONLY);
}

/* Runs it in hakmem's own thread; false: there is none. */
static bool run_apart(void (*what)(void))
{
    hak_os_start();
    if (!HAK_OWN_THREADS_ALLOWED) {
        CHECK(!hak_os_descriptors_are_apart());
        return false;
    }
    CHECK(hak_os_thread_start(&thread, what, &mine));
    while (!hak_os_thread_is_over(&thread))
        hak_os_thread_await(&thread, 1000);
    return true;
}

/* Standard error is that from now on. */
static void have_stderr(int fd)
{
    CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    hak_os_stderr_note();
}

static void check_parted(int reader)
{
    char got[64] = "";
    if (!has_parted)
        SKIP("this kernel gives a thread no empty table");
    CHECK(is_apart);
    CHECK(is_empty);
    CHECK_EQ(first_number, 0);
    CHECK_EQ(errno_then, 77);
    CHECK_EQ(errors[0], 0);
    CHECK_EQ(read(reader, got, sizeof got - 1), (ssize_t)strlen(MESSAGE));
    CHECK_STR(got, MESSAGE);
    CHECK(!hak_os_descriptors_are_apart()); /* this thread is not */
    CHECK(fcntl(0, F_GETFD) >= 0);
    CHECK(fcntl(2, F_GETFD) >= 0);
}

TEST(a_thread_with_an_empty_table_writes_to_a_pipe_on_standard_error)
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    have_stderr(ends[1]);
    if (run_apart(part))
        check_parted(ends[0]);
}

static bool may_take_over;

static void try_to_take_over(void)
{
    may_take_over = hak_os_descriptors_part() && (borrowed = hak_os_descriptors_borrow(2)) >= 0;
}

TEST(a_thread_with_an_empty_table_writes_to_a_socket_on_standard_error)
{
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    have_stderr(ends[1]);
    if (!run_apart(try_to_take_over))
        return;
    if (!may_take_over)
        SKIP("this kernel lends no descriptors");
    run_apart(part);
    check_parted(ends[0]);
}

TEST(a_file_that_took_the_number_of_standard_error_is_not_written_to_by_the_thread)
{
    char got[8];
    folder_put("log", "");
    folder_put("data", "");
    int data = open(folder_path("data"), O_RDWR);
    have_stderr(open(folder_path("log"), O_RDWR));
    CHECK_EQ(dup2(data, STDERR_FILENO), STDERR_FILENO);
    if (!run_apart(part) || !has_parted)
        return;
    CHECK_EQ(errors[0], EBADF);
    CHECK_EQ(pread(data, got, sizeof got, 0), 0);
}

TEST(a_copy_of_standard_error_serves_the_thread_too)
{
    char got[64] = "";
    folder_put("log", "");
    folder_put("data", "");
    int log = open(folder_path("log"), O_RDWR);
    have_stderr(log);
    hak_os_stderr_keep();
    CHECK_EQ(dup2(open(folder_path("data"), O_RDWR), STDERR_FILENO), STDERR_FILENO);
    if (!run_apart(part) || !has_parted)
        return;
    CHECK_EQ(errors[0], 0);
    CHECK_EQ(pread(log, got, sizeof got - 1, 0), (ssize_t)strlen(MESSAGE));
    CHECK_STR(got, MESSAGE);
}

static void part_and_share(void)
{
    hak_os_descriptors_part();
    hak_os_descriptors_share();
    is_apart = hak_os_descriptors_are_apart();
}

TEST(a_thread_that_shares_the_table_is_not_apart)
{
    is_apart = true;
    if (run_apart(part_and_share))
        CHECK(!is_apart);
}

TEST(what_is_no_descriptor_is_not_lent)
{
    CHECK_EQ(hak_os_descriptors_borrow(-1), -1);
    CHECK_EQ(hak_os_descriptors_borrow(900), -1);
}
