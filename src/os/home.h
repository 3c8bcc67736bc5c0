/* SPDX-License-Identifier: MIT */
/* os/home.h - whether this process is the one whose memory it runs in: a child of vfork is not.
 *
 * Owns        the id of the process that the memory belongs to, and which thread is its first.
 * Invariants  a child of vfork has its parent's memory and an id of its own. What is named after a
 *             process is the parent's business: left by the child, it would stay under a number
 *             that is nobody's. A copy that was not noticed yet (os/copy_mark.h) may have the
 *             number of its original: both are the first of their space of numbers.
 * Threads     any; the id is set at the start, and in copies before they have other threads.
 * Tests       tests/preload/profile.c
 */
#ifndef HAK_OS_HOME_H
#define HAK_OS_HOME_H

#include "base/compiler.h"

/* The process's id. libc's getpid is not called: each process would have the pages around it. */
uint32_t hak_os_pid(void);

/* In the process that the memory belongs to: at its start, and in a copy of the process. */
void hak_home_begin(void);

/* It is that process; it is a child of vfork. Before hak_home_begin neither is known. */
bool hak_is_at_home(void);
bool hak_is_away(void);

/* The calling thread is the one that called hak_home_begin, or a child of vfork in its place. No
 * system call is made. */
bool hak_is_first_at_home(void);

#endif
