/* SPDX-License-Identifier: MIT */
/* os/own_file.h - small files of the user that hakmem reads at one time and replaces at another.
 *
 * Owns        nothing.
 * Invariants  read only if it is a regular file of the effective user that no other user may write,
 *             reached through no symbolic link at its end. Replaced whole or not at all: by a new
 *             file beside it, mode 0600, and a rename. Its name is no other process's, in other
 *             containers too. Nothing blocks or allocates; errno stays. Calls: openat fstat geteuid
 *             fcntl read write close renameat2 unlinkat getcwd getrandom.
 * Threads     any.
 * Tests       tests/unit/os/own_file_test.c
 */
#ifndef HAK_OS_OWN_FILE_H
#define HAK_OS_OWN_FILE_H

#include "base/compiler.h"

enum own_file {
    OWN_FILE_READ,      /* all of it is in the buffer */
    OWN_FILE_ABSENT,    /* there is none */
    OWN_FILE_REFUSED,   /* this process may not read it */
    OWN_FILE_LINK,      /* a symbolic link */
    OWN_FILE_IRREGULAR, /* no regular file */
    OWN_FILE_FOREIGN,   /* another user's */
    OWN_FILE_OPEN,      /* group or others may write it */
    OWN_FILE_LARGE,     /* it does not fit */
};

/* Reads the whole file at `path`; *used_bytes is how long it is. */
enum own_file hak_os_own_file_read(const char *path, char *buffer, size_t buffer_bytes,
                                   size_t *used_bytes);

/* What is wrong, for people. */
const char *hak_os_own_file_text(enum own_file verdict);

/* Creates or replaces the file at `path`; 0, or an error number: then nothing has changed. */
int hak_os_own_file_replace(const char *path, const char *bytes, size_t count);

/* Writes the path from the root on; false: it does not fit, or is not known. */
bool hak_os_full_path(const char *path, char *full, size_t full_bytes);

#endif
