/* SPDX-License-Identifier: MIT */
/* os/request_file.h - a small file that another process of the same user left for this one.
 *
 * Owns        nothing.
 * Invariants  the file is a regular one of mode 0600, reached through no symbolic link, of the
 *             process's effective user. Where the process has other user ids besides, or the kernel
 *             keeps its memory from its user (prctl(2), PR_SET_DUMPABLE), the file's group must be
 *             0, which only root can give. Anything else at the path is left alone. A path without
 *             a file costs one call, which takes no descriptor, not even for a moment. What was
 *             opened is written to, and closed, only while its number still leads to it.
 *             No function changes errno or allocates.
 *             Calls: faccessat openat fstat getresuid prctl fcntl pread64 lseek write close.
 * Threads     any; the caller blocks signals if it may not be cancelled.
 * Tests       tests/unit/os/request_file_test.c
 */
#ifndef HAK_OS_REQUEST_FILE_H
#define HAK_OS_REQUEST_FILE_H

#include "os/kept_fd.h"

/* True when there is something at the path. */
bool hak_os_request_is_there(const char *path);

/* Opens the file and reads its first `head_bytes` bytes; false: it is not as above, or shorter. */
bool hak_os_request_open(const char *path, void *head, size_t head_bytes, struct os_kept_fd *file);

/* Writes at a place in the file; the next write of the descriptor follows there. Returns 0 or an
 * error number. */
int hak_os_request_write(const struct os_kept_fd *file, size_t at, const void *bytes, size_t count);

void hak_os_request_close(const struct os_kept_fd *file);

#endif
