/* SPDX-License-Identifier: MIT */
/* os/thread_exit.h - a function that runs when a thread ends.
 *
 * Owns        the one key of POSIX thread data that hakmem takes.
 * Invariants  no function changes errno or allocates, but that libc allocates for a key that comes
 *             after 31 others. A process without a thread library (glibc
 *             before 2.34, where it is a library of its own) has no key; neither has one whose keys
 *             are used up.
 * Threads     created once; then any thread.
 * Tests       tests/unit/os/thread_exit_test.c, tests/preload/no_exit_key.c,
 *             tests/preload/late_exit_key.c
 */
#ifndef HAK_OS_THREAD_EXIT_H
#define HAK_OS_THREAD_EXIT_H

#include "base/compiler.h"

/* `run` is called with a thread's value when the thread ends; false when there is no key. */
bool hak_thread_exit_start(void (*run)(void *value));

/* Sets the value of the calling thread; false when it has none, and `run` will not be called. */
bool hak_thread_exit_set(void *value);

/* True in the thread that the process began with. */
bool hak_thread_is_first(void);

#endif
