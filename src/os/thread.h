/* SPDX-License-Identifier: MIT */
/* os/thread.h - a thread of hakmem's own.
 *
 * Owns        where libc says whether there are threads.
 * Invariants  the thread receives no signal, is detached, and never ends by itself. It is libc's
 *             kind of thread, so that set*id(2) and everything else that libc does to all threads
 *             reaches it. libc may allocate for it, through hakmem like everybody else: the caller
 *             is outside every gate and lock.
 * Threads     anyone may start one.
 * Tests       tests/unit/os/thread_test.c
 */
#ifndef HAK_OS_THREAD_H
#define HAK_OS_THREAD_H

#include "base/compiler.h"

/* Runs run(NULL) in a new thread; false when there can be none. Keeps errno. */
bool hak_os_thread_start(void *(*run)(void *));

/* True while libc knows that the process has one thread, and saves itself locks for that; false
 * where libc does not tell (glibc does from 2.32 on), and before the library's constructors. */
bool hak_os_is_single_threaded(void);

/* Names the calling thread, for ps and debuggers: 15 bytes at most. */
void hak_os_thread_name(const char *name);

#endif
