/* SPDX-License-Identifier: MIT */
/* tests/unit/os/request_file_test.c - only a private file of the process's own user is opened, and
 * only that is written to and closed. */
#define _GNU_SOURCE
#include "os/request_file.h"

#include "check.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define HEAD "twelve bytes"

static char path[64], other[64];

static void name_files(void)
{
    snprintf(path, sizeof path, "/dev/shm/hakmem-test-request.%d", (int)getpid());
    snprintf(other, sizeof other, "/dev/shm/hakmem-test-other.%d", (int)getpid());
    unlink(path);
    unlink(other);
}

static void make(const char *name, mode_t mode)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, HEAD, 12), 12);
    CHECK(fchmod(fd, mode) == 0);
    close(fd);
}

static bool opens(void)
{
    char head[12];
    struct os_kept_fd file;
    errno = 77;
    bool is_open = hak_os_request_open(path, head, sizeof head, &file);
    CHECK_EQ(errno, 77);
    if (!is_open)
        return false;
    CHECK(memcmp(head, HEAD, 12) == 0);
    hak_os_request_close(&file);
    CHECK(fcntl(file.fd, F_GETFD) < 0);
    return true;
}

TEST(a_private_file_is_opened_and_closed)
{
    name_files();
    errno = 77;
    CHECK(!hak_os_request_is_there(path));
    CHECK_EQ(errno, 77);
    CHECK(!opens());
    make(path, 0600);
    CHECK(hak_os_request_is_there(path));
    CHECK(opens());
    unlink(path);
}

TEST(files_that_others_may_have_written_are_left_alone)
{
    static const mode_t modes[] = {0644, 0620, 0602, 0660, 0606, 0700, 04600, 02600};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        name_files();
        make(path, modes[i]);
        CHECK(!opens());
    }
    unlink(path);
}

TEST(links_special_files_and_incomplete_files_are_left_alone)
{
    name_files();
    make(other, 0600);
    CHECK(symlink(other, path) == 0);
    CHECK(!opens());
    name_files();
    CHECK(mkfifo(path, 0600) == 0);
    CHECK(!opens());
    name_files();
    CHECK(mkdir(path, 0600) == 0);
    CHECK(!opens());
    rmdir(path);
    name_files();
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK_EQ(write(fd, HEAD, 11), 11);
    close(fd);
    CHECK(!opens());
    unlink(path);
}

TEST(writes_go_to_their_offset)
{
    char head[12], text[32] = "";
    struct os_kept_fd file;
    name_files();
    make(path, 0600);
    CHECK(hak_os_request_open(path, head, sizeof head, &file));
    CHECK_EQ(hak_os_request_write(&file, 7, "BYTES", 5), 0);
    CHECK_EQ(hak_os_request_write(&file, 14, "more", 4), 0);
    hak_os_request_close(&file);
    int fd = open(path, O_RDONLY);
    CHECK_EQ(read(fd, text, sizeof text), 18);
    CHECK(memcmp(text, "twelve BYTES\0\0more", 18) == 0);
    close(fd);
    unlink(path);
}

TEST(a_file_that_took_over_the_descriptor_is_not_touched)
{
    char head[12], text[32] = "";
    struct os_kept_fd file;
    name_files();
    make(path, 0600);
    make(other, 0600);
    CHECK(hak_os_request_open(path, head, sizeof head, &file));
    int fd = open(other, O_RDWR);
    CHECK(dup2(fd, file.fd) == file.fd);
    CHECK_EQ(hak_os_request_write(&file, 5, "xxx", 3), EBADF);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
    hak_os_request_close(&file);
    CHECK(fcntl(file.fd, F_GETFD) >= 0);
    CHECK_EQ(pread(fd, text, sizeof text, 0), 12);
    CHECK(memcmp(text, HEAD, 12) == 0);
    unlink(path);
    unlink(other);
}

TEST(a_limit_on_files_is_reported_and_raises_no_signal)
{
    char head[12];
    struct os_kept_fd file;
    struct rlimit none = {0, 0};
    name_files();
    make(path, 0600);
    CHECK(hak_os_request_open(path, head, sizeof head, &file));
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    CHECK_EQ(hak_os_request_write(&file, 0, "xxx", 3), EFBIG);
    hak_os_request_close(&file);
    unlink(path);
}

/* As another user, in a child: 0 opened, 1 not. */
static int opened_as(uid_t real, uid_t effective, uid_t saved, int is_dumpable)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        char head[12];
        struct os_kept_fd file;
        if (setgid(65534) != 0 || setresuid(real, effective, saved) != 0 ||
            prctl(PR_SET_DUMPABLE, is_dumpable) != 0)
            _exit(9);
        _exit(hak_os_request_open(path, head, sizeof head, &file) ? 0 : 1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

TEST(a_process_with_other_rights_is_asked_by_root_only)
{
    if (geteuid() != 0)
        SKIP("not root");
    name_files();
    make(path, 0600);
    CHECK_EQ(opened_as(1234, 1234, 1234, 1), 1);
    CHECK(chown(path, 1234, 1234) == 0);
    CHECK_EQ(opened_as(1234, 1234, 1234, 1), 0);
    CHECK_EQ(opened_as(1234, 1234, 1234, 0), 1);
    CHECK_EQ(opened_as(1234, 1234, 0, 1), 1);
    CHECK_EQ(opened_as(0, 1234, 1234, 1), 1);
    CHECK_EQ(opened_as(1235, 1235, 1235, 1), 1);
    CHECK(!opens());
    CHECK(chown(path, 1234, 0) == 0);
    CHECK_EQ(opened_as(1234, 1234, 1234, 0), 0);
    CHECK_EQ(opened_as(0, 1234, 0, 1), 0);
    unlink(path);
}
