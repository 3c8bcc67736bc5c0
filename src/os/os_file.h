/* SPDX-License-Identifier: MIT */
/* os/os_file.h - reading a small file from a path that may hold anything.
 *
 * Owns        nothing.
 * Invariants  never blocks, whatever is at the path; keeps errno; allocates nothing. Calls: openat
 *             lseek read close.
 * Threads     any thread at any time.
 * Tests       tests/unit/os/os_file_test.c
 */
#ifndef HAK_OS_OS_FILE_H
#define HAK_OS_OS_FILE_H

#include "base/compiler.h"

enum os_file {
    OS_FILE_READ,      /* all of it is in the buffer */
    OS_FILE_ABSENT,    /* there is none, or the process may open nothing now */
    OS_FILE_REFUSED,   /* there is one, and this process may not read it */
    OS_FILE_IRREGULAR, /* what is there is no regular file */
    OS_FILE_LARGE,     /* it does not fit */
};

/* Reads the whole file at `path`; *used_bytes is how long it is. */
enum os_file hak_os_file_read(const char *path, char *buffer, size_t buffer_bytes,
                              size_t *used_bytes);

#endif
