/* SPDX-License-Identifier: MIT */
/* os/bare_exit.h - a program whose first thread ends by the system call exit, alone.
 *
 * Owns        what is done before that.
 * Invariants  libc ends a process by exit_group, whatever its threads do; exit ends one thread, and
 *             the process only with the last. Programs of one thread use it, in strict mode
 *             (seccomp(2)) because nothing else is left to them. A thread of hakmem's own would
 *             outlive them: the process stayed, and since Linux 6.1 it had that thread's status.
 *             So that one ends before, for good. Told by os/confine.c; an instruction of the
 *             program's own is not seen.
 * Threads     any; signal handlers, too. Nothing is allocated.
 * Tests       tests/preload/ending.c
 */
#ifndef HAK_OS_BARE_EXIT_H
#define HAK_OS_BARE_EXIT_H

/* What must be done before the first thread ends so. In a confined program it may make no call that
 * hak_os_ask_begin guards. */
void hak_os_on_bare_exit(void (*prepare)(void));

/* The calling thread is about to end so, or to give up all other ways. */
void hak_os_bare_exit(void);

#endif
