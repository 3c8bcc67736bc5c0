/* SPDX-License-Identifier: MIT */
/* os/identity.h - changes of what a process is to the kernel, which libc makes for its own threads.
 *
 * Owns        setuid, setgid and their kin in libhakmem.so, and unshare and setns. A user id is a
 *             thread's own in the kernel; libc changes it in all threads that it knows, which
 *             hakmem's is not (os/thread.h): one that went on as root would be a way back. The
 *             kernel refuses some namespaces to a process of several threads.
 * Invariants  `before` is called, then libc's function, then `after`. Programs that are linked with
 *             hakmem.o have libc's functions: there the thread ends by itself, within seconds of
 *             the last work for it (SECURITY.md). Namespaces are also asked for by syscall(2), as
 *             Perl programs must; os/confine.c, which has that name, does the same around it.
 * Threads     any; signal handlers, too.
 * Tests       tests/preload/ending.c
 */
#ifndef HAK_OS_IDENTITY_H
#define HAK_OS_IDENTITY_H

#include "base/compiler.h"

/* Called around each such change from now on; neither changes errno. */
void hak_os_identity_watch(void (*before)(void), void (*after)(void));

/* Such a change is about to be made: calls `before`. Returns what is to be called then; NULL:
 * nothing. */
void (*hak_os_identity_begin(void))(void);

#endif
