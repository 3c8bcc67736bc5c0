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
