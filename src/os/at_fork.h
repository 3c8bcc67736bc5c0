/* SPDX-License-Identifier: MIT */
/* os/at_fork.h - functions that run around fork.
 *
 * Owns        nothing.
 * Invariants  glibc's pthread_atfork stands in an archive that is linked into each library behind
 *             all other code: the shared library calls what it calls, lest every process have a
 *             page, and what the kernel maps with it, for one jump.
 * Threads     any.
 * Tests       tests/preload/fork.c
 */
#ifndef HAK_OS_AT_FORK_H
#define HAK_OS_AT_FORK_H

/* pthread_atfork. */
void hak_os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

#endif
