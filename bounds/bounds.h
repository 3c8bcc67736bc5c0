/* SPDX-License-Identifier: MIT */
/* bounds/bounds.h - checked copies: libhakmem-bounds.so, preloaded beside libhakmem.so.
 *
 * Owns        libc's functions that copy into memory of the caller's (BOUNDS_TABLE and
 *             BOUNDS_FORTIFIED_TABLE), and the addresses of the next definitions of these names.
 * Invariants  a write that would pass the end of a hakmem block does not happen. All other memory
 *             is as it is without the library. Nothing is allocated, errno is kept. Until the
 *             constructor has run nothing is checked, and the functions on memory and strings are
 *             loops: the loader's resolvers may call them before this library is relocated.
 * Threads     any, signal handlers too.
 * Tests       tests/preload/bounds_preload.sh, tests/cli/run_cli.sh
 */
#ifndef HAK_BOUNDS_BOUNDS_H
#define HAK_BOUNDS_BOUNDS_H

#define HAKMEM_WEAK
#include "base/compiler.h"
#include "hakmem/hakmem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

/* X(name, result, parameters) */
#define BOUNDS_TABLE(X)                                                                            \
    X(memcpy, void *, (void *, const void *, size_t))                                              \
    X(memmove, void *, (void *, const void *, size_t))                                             \
    X(mempcpy, void *, (void *, const void *, size_t))                                             \
    X(memset, void *, (void *, int, size_t))                                                       \
    X(strcpy, char *, (char *, const char *))                                                      \
    X(stpcpy, char *, (char *, const char *))                                                      \
    X(strcat, char *, (char *, const char *))                                                      \
    X(strncpy, char *, (char *, const char *, size_t))                                             \
    X(strncat, char *, (char *, const char *, size_t))                                             \
    X(vsprintf, int, (char *, const char *, va_list))                                              \
    X(vsnprintf, int, (char *, size_t, const char *, va_list))                                     \
    X(fgets, char *, (char *, int, FILE *))                                                        \
    X(fread, size_t, (void *, size_t, size_t, FILE *))                                             \
    X(read, ssize_t, (int, void *, size_t))                                                        \
    X(pread, ssize_t, (int, void *, size_t, off_t))                                                \
    X(recv, ssize_t, (int, void *, size_t, int))                                                   \
    X(recvfrom, ssize_t, (int, void *, size_t, int, struct sockaddr *, socklen_t *))

/* What the compiler calls instead with _FORTIFY_SOURCE; it adds the size that it knows. */
#define BOUNDS_FORTIFIED_TABLE(X)                                                                  \
    X(__memcpy_chk, void *, (void *, const void *, size_t, size_t))                                \
    X(__memmove_chk, void *, (void *, const void *, size_t, size_t))                               \
    X(__mempcpy_chk, void *, (void *, const void *, size_t, size_t))                               \
    X(__memset_chk, void *, (void *, int, size_t, size_t))                                         \
    X(__strcpy_chk, char *, (char *, const char *, size_t))                                        \
    X(__stpcpy_chk, char *, (char *, const char *, size_t))                                        \
    X(__strcat_chk, char *, (char *, const char *, size_t))                                        \
    X(__strncpy_chk, char *, (char *, const char *, size_t, size_t))                               \
    X(__strncat_chk, char *, (char *, const char *, size_t, size_t))                               \
    X(__vsprintf_chk, int, (char *, int, size_t, const char *, va_list))                           \
    X(__vsnprintf_chk, int, (char *, size_t, int, size_t, const char *, va_list))                  \
    X(__fgets_chk, char *, (char *, size_t, int, FILE *))                                          \
    X(__fread_chk, size_t, (void *, size_t, size_t, size_t, FILE *))                               \
    X(__read_chk, ssize_t, (int, void *, size_t, size_t))                                          \
    X(__pread_chk, ssize_t, (int, void *, size_t, off_t, size_t))                                  \
    X(__recv_chk, ssize_t, (int, void *, size_t, size_t, int))                                     \
    X(__recvfrom_chk, ssize_t, (int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *))

/* The next definition of each name; NULL: not looked for yet, or libc has none. */
struct bounds_next {
#define X(name, result, parameters) result(*name) parameters;
    BOUNDS_TABLE(X) BOUNDS_FORTIFIED_TABLE(X)
#undef X
};
extern struct bounds_next hak_bounds_next;

#define X(name, result, parameters) HAK_EXPORT result name parameters;
BOUNDS_TABLE(X)
BOUNDS_FORTIFIED_TABLE(X)
#undef X
HAK_EXPORT int sprintf(char *to, const char *format, ...);
HAK_EXPORT int snprintf(char *to, size_t bytes, const char *format, ...);
HAK_EXPORT int __sprintf_chk(char *to, int flag, size_t known, const char *format, ...);
HAK_EXPORT int __snprintf_chk(char *to, size_t bytes, int flag, size_t known, const char *format,
                              ...);
HAK_EXPORT ssize_t __pread64_chk(int fd, void *to, size_t bytes, off_t offset, size_t known);

/* True from the constructor on, when libhakmem.so is loaded. */
extern bool hak_bounds_is_checking;

/* Finds the next definitions, for a caller that cannot do without before the constructor. */
void hak_bounds_find_next(void);

/* Reports the access and aborts, unless hakmem itself is the caller. */
void hak_bounds_stop(const char *function, enum hakmem_access access, const void *address,
                     size_t bytes, const void *caller);

/* Bytes to the end of the block at `address`; SIZE_MAX: no block of hakmem's. */
HAK_INLINE size_t room_at(const void *address)
{
    return HAK_LIKELY(hak_bounds_is_checking) ? hakmem_object_size(address) : SIZE_MAX;
}

HAK_INLINE void check(const char *function, enum hakmem_access access, const void *address,
                      size_t bytes, const void *caller)
{
    if (bytes != 0 && HAK_UNLIKELY(bytes > room_at(address)))
        hak_bounds_stop(function, access, address, bytes, caller);
}

/* In a function of the tables, which is named in the report. */
#define CHECK_WRITE(address, bytes)                                                                \
    check(__func__, HAKMEM_WRITE, address, bytes, __builtin_return_address(0))
#define CHECK_READ(address, bytes)                                                                 \
    check(__func__, HAKMEM_READ, address, bytes, __builtin_return_address(0))

/* A next definition that is needed, at any time. */
#define NEXT(name)                                                                                 \
    (HAK_LIKELY(hak_bounds_next.name != NULL) ? (void)0 : hak_bounds_find_next(),                  \
     hak_bounds_next.name)

#endif
