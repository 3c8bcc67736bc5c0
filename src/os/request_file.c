/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/request_file.h"

#include "os/file_calls.h"
#include "os/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

bool hak_os_request_is_there(const char *path)
{
    int saved = errno;
    bool is_there = syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
    errno = saved;
    return is_there;
}

static bool is_trusted(const struct stat *about)
{
    uid_t real, effective, saved;
    if (!S_ISREG(about->st_mode) || (about->st_mode & 07777) != 0600 ||
        getresuid(&real, &effective, &saved) != 0 || about->st_uid != effective)
        return false;
    return about->st_gid == 0 ||
           (real == effective && saved == effective && syscall(SYS_prctl, PR_GET_DUMPABLE) == 1);
}

static bool read_head(int fd, void *head, size_t head_bytes)
{
    struct stat about;
    return syscall(SYS_fstat, fd, &about) == 0 && is_trusted(&about) &&
           hak_call_pread(fd, head, head_bytes, 0) == (ssize_t)head_bytes;
}

/* Above the numbers that programs count on, if there is room. */
static int move_up(int fd)
{
    int high = hak_os_kept_copy(fd);
    if (high < 0)
        return fd;
    hak_call_close(fd);
    return high;
}

bool hak_os_request_open(const char *path, void *head, size_t head_bytes, struct os_kept_fd *file)
{
    int saved = errno;
    int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = hak_call_open(path, flags);
    bool is_read = fd >= 0 && read_head(fd, head, head_bytes);
    if (is_read) {
        fd = move_up(fd);
        *file = hak_os_kept_fd(fd);
        is_read = file->fd >= 0;
    }
    if (fd >= 0 && !is_read)
        hak_call_close(fd);
    errno = saved;
    return is_read;
}

int hak_os_request_write(const struct os_kept_fd *file, size_t at, const void *bytes, size_t count)
{
    int saved = errno;
    int error = EBADF;
    if (hak_os_kept_is_same(file) && syscall(SYS_lseek, file->fd, (off_t)at, SEEK_SET) == (off_t)at)
        error = hak_os_output_write_kept(file, bytes, count);
    errno = saved;
    return error;
}

void hak_os_request_close(const struct os_kept_fd *file)
{
    int saved = errno;
    if (hak_os_kept_is_same(file))
        hak_call_close(file->fd);
    errno = saved;
}
