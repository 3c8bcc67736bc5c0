/* SPDX-License-Identifier: MIT */
/* os/stderr.h - standard error as it was when hakmem started.
 *
 * Owns        what it was, and the copy of it that options want which print later.
 * Invariants  what the program put in its place is never written to (os/kept_fd.h).
 * Threads     Notes are made before the program has threads; any thread writes, hakmem's own too,
 *             which may have to borrow the descriptor (os/descriptors.h).
 * Tests       tests/unit/os/kept_fd_test.c, tests/preload/own_files.c
 */
#ifndef HAK_OS_STDERR_H
#define HAK_OS_STDERR_H

#include "base/text.h"
#include "os/kept_fd.h"

/* Notes what standard error is, the first time. */
void hak_os_stderr_start(void);

/* The same at any time: for tests, which give their children another one. */
void hak_os_stderr_note(void);

/* Keeps a copy of it, for programs that close or replace theirs. */
void hak_os_stderr_keep(void);

/* Where standard error as it was can be written to: the copy, or descriptor 2; NULL: nowhere. */
const struct os_kept_fd *hak_os_stderr(void);

/* Writes all of `text` there; 0, or an error number: EBADF if it is closed, or another file. */
int hak_os_stderr_write(const char *text, size_t bytes);

/* Writes the text and the end of the line; of a full text the last character is lost. */
void hak_os_stderr_line(struct text *text);

/* Writes one line there: what hak_os_unwritten_add adds (os/output.h). */
void hak_os_stderr_unwritten(const char *what, const char *path, const char *why, int error);

#endif
