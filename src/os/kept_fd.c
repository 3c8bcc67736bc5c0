/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/kept_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Shells use 10 and 255, and select takes up to 1023. */
#define FIRST_COPY 100

struct os_kept_fd hak_os_kept_fd(int fd)
{
    struct os_kept_fd kept = {.fd = -1};
    struct stat about;
    int saved = errno;
    /* Not by libc's name, which glibc before 2.33 has not. */
    if (fd >= 0 && syscall(SYS_fstat, fd, &about) == 0)
        kept = (struct os_kept_fd){fd, about.st_mode & S_IFMT, about.st_dev, about.st_ino};
    errno = saved;
    return kept;
}

bool hak_os_kept_is_same(const struct os_kept_fd *kept)
{
    struct os_kept_fd now = hak_os_kept_fd(kept->fd);
    return now.fd >= 0 && now.type == kept->type && now.device == kept->device &&
           now.inode == kept->inode;
}

int hak_os_kept_copy(int fd)
{
    int saved = errno;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_COPY);
    errno = saved;
    return high;
}
