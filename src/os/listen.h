/* SPDX-License-Identifier: MIT */
/* os/listen.h - handlers of signals that do not take them away from the program.
 *
 * Owns        which signal statistics are printed for, and what handled it before.
 * Invariants  a handler that the program set before is still called; one that it sets later
 *             replaces this one. The handler here changes atomics and wakes a futex, no more, so
 *             locks need not be kept from it.
 * Threads     set before main; the handler runs in any thread.
 * Tests       tests/unit/os/listen_test.c, tests/preload/stats_file_preload.sh
 */
#ifndef HAK_OS_LISTEN_H
#define HAK_OS_LISTEN_H

#include "base/compiler.h"

/* The number that "USR2", "SIGUSR2" or "12" means; 0: no signal that can be listened to. */
int hak_os_signal_find(const char *text);

/* Calls `run` at each such signal; false: the kernel refuses. One signal only. */
bool hak_os_signal_listen(int number, void (*run)(void));

#endif
