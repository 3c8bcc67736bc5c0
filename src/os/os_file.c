/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/os_file.h"

#include "os/file_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A filter that refuses the call, or a process without descriptors left, says nothing about the
 * file: to most processes it is not there. */
static enum os_file why_closed(void)
{
    if (errno == EACCES || errno == ELOOP || errno == EIO)
        return OS_FILE_REFUSED;
    return errno == ENXIO ? OS_FILE_IRREGULAR : OS_FILE_ABSENT;
}

/* Fills the buffer from `fd`; the file is large if there is more. */
static enum os_file read_all(int fd, char *buffer, size_t buffer_bytes, size_t *used_bytes)
{
    switch (hak_call_read_all(fd, buffer, buffer_bytes, used_bytes)) {
    case CALL_READ_ALL:
        return OS_FILE_READ;
    case CALL_READ_FULL:
        return OS_FILE_LARGE;
    default:
        return errno == EISDIR || errno == EAGAIN ? OS_FILE_IRREGULAR : OS_FILE_REFUSED;
    }
}

enum os_file hak_os_file_read(const char *path, char *buffer, size_t buffer_bytes,
                              size_t *used_bytes)
{
    int saved = errno;
    enum os_file verdict;
    *used_bytes = 0;
    /* Without O_NONBLOCK a pipe would wait here for somebody to write into it. */
    int fd = hak_call_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        verdict = why_closed();
    } else {
        if (lseek(fd, 0, SEEK_CUR) < 0 && errno == ESPIPE)
            verdict = OS_FILE_IRREGULAR;
        else
            verdict = read_all(fd, buffer, buffer_bytes, used_bytes);
        hak_call_close(fd);
    }
    errno = saved;
    return verdict;
}
