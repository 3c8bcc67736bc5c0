/* SPDX-License-Identifier: MIT */
/* os/descriptors.h - a table of descriptors for hakmem's own thread alone.
 *
 * Owns        which thread has one.
 * Invariants  what that thread opens takes no number in the program's table: not one that the
 *             program has just closed and opens again (close(0), then open), not one that it closes
 *             together with others (close_range), and no child of a fork inherits it. The table is
 *             empty from the start on: a copy of the program's would keep its pipes, sockets and
 *             leases open. The program's record locks (fcntl) belong to the program's table and are
 *             not touched.
 * Argument    close_range with CLOSE_RANGE_UNSHARE (Linux 5.9) makes the table and empties it in
 *             one call. Kernels may put the first 64 descriptors into it for the time of that call;
 *             what the program closes meanwhile is closed when the call ends.
 * Threads     one thread at a time has such a table: the one that parted last. It is known by where
 *             its errno is, as room for static thread storage is small.
 * Tests       tests/unit/os/descriptors_test.c, tests/preload/descriptors.c
 */
#ifndef HAK_OS_DESCRIPTORS_H
#define HAK_OS_DESCRIPTORS_H

#include "base/compiler.h"

/* In hakmem's own thread: from now on it has an empty table; false: the kernel or a filter refuses
 * that, and it has the program's. */
bool hak_os_descriptors_part(void);

/* In hakmem's own thread, which another one may have preceded: it has the program's table. */
void hak_os_descriptors_share(void);

/* True in a thread that has a table of its own. */
bool hak_os_descriptors_are_apart(void);

/* In such a thread: a descriptor, to be closed, for what the number means in the program's table;
 * -1: it means nothing, or that cannot be had. Not in a program that confined itself. */
int hak_os_descriptors_borrow(int fd);

#endif
