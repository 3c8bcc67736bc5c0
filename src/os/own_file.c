/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/own_file.h"

#include "base/text.h"
#include "os/file_calls.h"
#include "os/home.h"
#include "os/kept_fd.h"
#include "os/output.h"
#include "os/random.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_file(const char *path, int flags)
{
    int all = flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = hak_call_open(path, all);
    int high = fd >= 0 && fd <= STDERR_FILENO ? hak_os_kept_copy(fd) : -1;
    if (high < 0)
        return fd;
    hak_call_close(fd);
    return high;
}

static enum own_file why_closed(void)
{
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
        return OWN_FILE_ABSENT;
    case ELOOP:
        return OWN_FILE_LINK;
    case ENXIO:
        return OWN_FILE_IRREGULAR;
    default:
        return OWN_FILE_REFUSED;
    }
}

static enum own_file look_at(int fd)
{
    struct stat about;
    if (syscall(SYS_fstat, fd, &about) != 0)
        return OWN_FILE_REFUSED;
    if (!S_ISREG(about.st_mode))
        return OWN_FILE_IRREGULAR;
    if (about.st_uid != (uid_t)syscall(SYS_geteuid))
        return OWN_FILE_FOREIGN;
    return (about.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? OWN_FILE_OPEN : OWN_FILE_READ;
}

static enum own_file read_all(int fd, char *buffer, size_t buffer_bytes, size_t *used_bytes)
{
    switch (hak_call_read_all(fd, buffer, buffer_bytes, used_bytes)) {
    case CALL_READ_ALL:
        return OWN_FILE_READ;
    case CALL_READ_FULL:
        return OWN_FILE_LARGE;
    default:
        return OWN_FILE_REFUSED;
    }
}

enum own_file hak_os_own_file_read(const char *path, char *buffer, size_t buffer_bytes,
                                   size_t *used_bytes)
{
    int saved = errno;
    *used_bytes = 0;
    int fd = open_file(path, O_RDONLY);
    enum own_file verdict = fd < 0 ? why_closed() : look_at(fd);
    if (verdict == OWN_FILE_READ)
        verdict = read_all(fd, buffer, buffer_bytes, used_bytes);
    if (fd >= 0)
        hak_call_close(fd);
    errno = saved;
    return verdict;
}

const char *hak_os_own_file_text(enum own_file verdict)
{
    static const char *const texts[] = {
        [OWN_FILE_READ] = "can be read",
        [OWN_FILE_ABSENT] = "is not there",
        [OWN_FILE_REFUSED] = "cannot be read",
        [OWN_FILE_LINK] = "is a symbolic link",
        [OWN_FILE_IRREGULAR] = "is not a regular file",
        [OWN_FILE_FOREIGN] = "belongs to another user",
        [OWN_FILE_OPEN] = "is writable by other users",
        [OWN_FILE_LARGE] = "is too large",
    };
    return texts[verdict];
}

/* Beside the file, so that it is on the same file system. The number of the process tells whose a
 * file is that was left. It is not enough: containers that share the folder have the same ones. */
static bool name_new(const char *path, char *name, size_t name_bytes)
{
    struct text text = {.start = name, .bytes = name_bytes};
    hak_text_add(&text, path);
    hak_text_add(&text, ".new.");
    hak_text_add_number(&text, hak_os_pid(), 10);
    hak_text_add(&text, ".");
    hak_text_add_number(&text, hak_os_random() >> 32, 16);
    hak_text_add_bytes(&text, "", 1);
    return name[text.used - 1] == '\0';
}

static int replace(const char *path, const char *name, const char *bytes, size_t count)
{
    int fd = open_file(name, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return errno;
    int error = hak_os_output_write(fd, bytes, count);
    if (hak_call_close(fd) != 0 && error == 0)
        error = errno;
    if (error == 0 && syscall(SYS_renameat2, AT_FDCWD, name, AT_FDCWD, path, 0) != 0)
        error = errno;
    if (error != 0)
        syscall(SYS_unlinkat, AT_FDCWD, name, 0);
    return error;
}

int hak_os_own_file_replace(const char *path, const char *bytes, size_t count)
{
    char name[PATH_MAX];
    int saved = errno;
    int error =
        name_new(path, name, sizeof name) ? replace(path, name, bytes, count) : ENAMETOOLONG;
    errno = saved;
    return error;
}

bool hak_os_full_path(const char *path, char *full, size_t full_bytes)
{
    int saved = errno;
    size_t used = 0;
    if (*path != '/') {
        long bytes = syscall(SYS_getcwd, full, full_bytes);
        used = bytes > 0 && *full == '/' ? strlen(full) : full_bytes;
    }
    errno = saved;
    if (used + 1 + strlen(path) + 1 > full_bytes)
        return false;
    if (*path != '/')
        full[used++] = '/';
    memcpy(full + used, path, strlen(path) + 1);
    return true;
}
