/* SPDX-License-Identifier: MIT */
/* os/kept_fd.h - descriptors that hakmem writes to later.
 *
 * Owns        nothing.
 * Invariants  The numbers of descriptors are the program's: it may close any of them, hakmem's own
 *             copies too, and open a file that gets the number. So the file behind a number, its
 *             device, inode and type, is recorded while it is certainly the right one, and verified
 *             by fstat before each write; another file is never written to. If it is closed at
 *             start, or a filter refuses fstat, nothing is written. No function changes errno or
 *             allocates.
 * Argument    A write meets the program's file only if the program closes the descriptor and opens
 *             the file between that fstat and the write that follows, or if the file noted is gone
 *             and its inode serves a new file. A copy keeps its inode from that.
 * Threads     Notes are made before the program has threads; any thread writes.
 * Tests       tests/unit/os/kept_fd_test.c, tests/preload/own_files.c
 */
#ifndef HAK_OS_KEPT_FD_H
#define HAK_OS_KEPT_FD_H

#include "base/compiler.h"

struct os_kept_fd {
    int fd; /* -1: none */
    uint32_t type;
    uint64_t device, inode;
};

/* The descriptor with the file that it leads to now; none if it is closed. */
struct os_kept_fd hak_os_kept_fd(int fd);

/* True when it still leads to that file. */
bool hak_os_kept_is_same(const struct os_kept_fd *kept);

/* A copy of `fd` above the numbers that programs count on, closed by exec; -1: there is none. */
int hak_os_kept_copy(int fd);

#endif
