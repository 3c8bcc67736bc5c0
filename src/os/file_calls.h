/* SPDX-License-Identifier: MIT */
/* os/file_calls.h - system calls on files, by number.
 *
 * Owns        nothing.
 * Invariants  libc's functions of these names are points of cancellation: a thread with a pending
 *             cancellation would end in them, inside malloc or free, blocked signals or not. These
 *             are none. They set errno.
 * Threads     any, signal handlers too.
 * Tests       tests/preload/cancel.c; tools/check_names.py refuses libc's
 */
#ifndef HAK_OS_FILE_CALLS_H
#define HAK_OS_FILE_CALLS_H

#include "base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HAK_FILE_MODE 0600 /* of a new file */

HAK_INLINE int hak_call_openat(int folder, const char *path, int flags)
{
    return (int)syscall(SYS_openat, folder, path, flags, HAK_FILE_MODE);
}

HAK_INLINE int hak_call_open(const char *path, int flags)
{
    return hak_call_openat(AT_FDCWD, path, flags);
}

HAK_INLINE ssize_t hak_call_read(int fd, void *buffer, size_t bytes)
{
    return syscall(SYS_read, fd, buffer, bytes);
}

/* Fills the buffer, of which *used_bytes are used, up to the file's end. CALL_READ_FULL: there is
 * more than it holds; CALL_READ_REFUSED: errno says why. */
enum call_read { CALL_READ_ALL, CALL_READ_FULL, CALL_READ_REFUSED };
HAK_INLINE enum call_read hak_call_read_all(int fd, char *buffer, size_t buffer_bytes,
                                            size_t *used_bytes)
{
    char beyond;
    for (;;) {
        size_t room = buffer_bytes - *used_bytes;
        ssize_t got =
            hak_call_read(fd, room > 0 ? buffer + *used_bytes : &beyond, room > 0 ? room : 1);
        if (got == 0)
            return CALL_READ_ALL;
        if (got > 0 && room == 0)
            return CALL_READ_FULL;
        if (got > 0)
            *used_bytes += (size_t)got;
        else if (errno != EINTR)
            return CALL_READ_REFUSED;
    }
}

HAK_INLINE ssize_t hak_call_pread(int fd, void *buffer, size_t bytes, off_t at)
{
    return syscall(SYS_pread64, fd, buffer, bytes, at);
}

HAK_INLINE ssize_t hak_call_write(int fd, const void *bytes, size_t count)
{
    return syscall(SYS_write, fd, bytes, count);
}

/* Gives the file memory for all bytes from its start on. */
HAK_INLINE int hak_call_allocate(int fd, off_t bytes)
{
    return (int)syscall(SYS_fallocate, fd, 0, (off_t)0, bytes);
}

HAK_INLINE int hak_call_close(int fd)
{
    return (int)syscall(SYS_close, fd);
}

#endif
