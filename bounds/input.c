/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bounds.h"

/* Nobody knows before how much will come: a count beyond the end of the block is the fault, as with
 * _FORTIFY_SOURCE. */

static size_t product(size_t left, size_t right)
{
    size_t result;
    return __builtin_mul_overflow(left, right, &result) ? SIZE_MAX : result;
}

char *fgets(char *to, int bytes, FILE *file)
{
    CHECK_WRITE(to, bytes < 0 ? 0 : (size_t)bytes);
    return NEXT(fgets)(to, bytes, file);
}

size_t fread(void *to, size_t bytes, size_t count, FILE *file)
{
    CHECK_WRITE(to, product(bytes, count));
    return NEXT(fread)(to, bytes, count, file);
}

ssize_t read(int fd, void *to, size_t bytes)
{
    CHECK_WRITE(to, bytes);
    return NEXT(read)(fd, to, bytes);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    CHECK_WRITE(to, bytes);
    return NEXT(pread)(fd, to, bytes, offset);
}
#ifndef pread64 /* as in musl, where it is another word for pread */
HAK_EXPORT ssize_t pread64(int fd, void *to, size_t bytes, off_t offset)
    __attribute__((alias("pread")));
#endif

ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
    CHECK_WRITE(to, bytes);
    return NEXT(recv)(fd, to, bytes, flags);
}

ssize_t recvfrom(int fd, void *to, size_t bytes, int flags, struct sockaddr *from,
                 socklen_t *from_bytes)
{
    CHECK_WRITE(to, bytes);
    return NEXT(recvfrom)(fd, to, bytes, flags, from, from_bytes);
}

char *__fgets_chk(char *to, size_t known, int bytes, FILE *file)
{
    CHECK_WRITE(to, bytes < 0 ? 0 : (size_t)bytes);
    return NEXT(__fgets_chk)(to, known, bytes, file);
}

size_t __fread_chk(void *to, size_t known, size_t bytes, size_t count, FILE *file)
{
    CHECK_WRITE(to, product(bytes, count));
    return NEXT(__fread_chk)(to, known, bytes, count, file);
}

ssize_t __read_chk(int fd, void *to, size_t bytes, size_t known)
{
    CHECK_WRITE(to, bytes);
    return NEXT(__read_chk)(fd, to, bytes, known);
}

ssize_t __pread_chk(int fd, void *to, size_t bytes, off_t offset, size_t known)
{
    CHECK_WRITE(to, bytes);
    return NEXT(__pread_chk)(fd, to, bytes, offset, known);
}
HAK_EXPORT ssize_t __pread64_chk(int fd, void *to, size_t bytes, off_t offset, size_t known)
    __attribute__((alias("__pread_chk")));

ssize_t __recv_chk(int fd, void *to, size_t bytes, size_t known, int flags)
{
    CHECK_WRITE(to, bytes);
    return NEXT(__recv_chk)(fd, to, bytes, known, flags);
}

ssize_t __recvfrom_chk(int fd, void *to, size_t bytes, size_t known, int flags,
                       struct sockaddr *from, socklen_t *from_bytes)
{
    CHECK_WRITE(to, bytes);
    return NEXT(__recvfrom_chk)(fd, to, bytes, known, flags, from, from_bytes);
}
