/* SPDX-License-Identifier: MIT */
/* os/signal_names.h - the functions by which programs ask for and set the action of a signal.
 *
 * Owns        in libhakmem.so: sigaction, signal, bsd_signal, ssignal, sysv_signal, __sysv_signal,
 *             sigset, sigignore and siginterrupt. Each is libc's own; around a call for SIGSEGV
 *             the front is away (os/fault_watch.h). A program that is linked with hakmem has libc's
 *             functions as they are.
 * Invariants  what the program sees of a signal's action is what it set.
 * Threads     any; signal handlers too.
 * Tests       tests/preload/guard_hit_preload.sh
 */
#ifndef HAK_OS_SIGNAL_NAMES_H
#define HAK_OS_SIGNAL_NAMES_H

/* libc's sigaction, where the name is ours; else NULL. */
void *hak_os_libcs_sigaction(void);

#endif
