/* SPDX-License-Identifier: MIT */
/* os/output.h - files that statistics go to.
 *
 * Owns        nothing.
 * Invariants  no function changes errno or allocates. Errors of a write (a full disk, a closed
 *             pipe, a limit) are returned to the caller and never raise a signal. So signals are
 *             blocked around it; but not while a thread waits for the reader of a pipe or socket.
 *             That is no more than a second for each 4 KiB, then the rest is given up with EAGAIN,
 *             and until this reader takes something nobody waits for it again. Only where another
 *             writer is quicker to take the room that was found, and in a program that confined
 *             itself, does a write wait for as long as the program's own would.
 * Threads     any.
 * Tests       tests/unit/os/output_test.c, tests/preload/stats_file_preload.sh,
 *             tests/preload/stuck_preload.py
 */
#ifndef HAK_OS_OUTPUT_H
#define HAK_OS_OUTPUT_H

#include "base/text.h"
#include "os/kept_fd.h"

/* Opens a file for appending (created 0600), without waiting for the reader of a pipe; returns a
 * descriptor, closed by exec and never one of 0 to 2, which the program may have closed and goes on
 * using; or an error number below 0. */
int hak_os_output_open(const char *path);

/* Creates a file that does not exist yet (0600, through no link at its end); a descriptor of the
 * same kind, or an error number below 0. */
int hak_os_output_create(const char *path);

/* Removes a file that was created so, and could not be written. */
void hak_os_output_remove(const char *path);

/* Writes all to what the caller takes `fd` to be; returns 0 or an error number. */
int hak_os_output_write(int fd, const char *bytes, size_t count);

/* In the calling thread, hakmem's own, from now on: where the reader of a pipe keeps it waiting,
 * the next function gives up with EINTR once `is_over` says so. Not in a program that confined
 * itself. */
void hak_os_output_end_when(bool (*is_over)(void));

/* The same as long as it leads to the file that it led to; EBADF from then on. */
int hak_os_output_write_kept(const struct os_kept_fd *to, const char *bytes, size_t count);

/* The meaning of the error, for those of files; "an error" for others. */
const char *hak_os_error_name(int error);

/* Adds "WHAT cannot be written to PATH: WHY (error NUMBER)", without the path where that is NULL,
 * and without the number where that is 0. */
void hak_os_unwritten_add(struct text *text, const char *what, const char *path, const char *why,
                          int error);

/* Milliseconds since 1970. */
uint64_t hak_os_unix_ms(void);

#endif
