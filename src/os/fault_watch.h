/* SPDX-License-Identifier: MIT */
/* os/fault_watch.h - a report at faults of one kind, in programs that must not notice it.
 *
 * Owns        the front: a handler of SIGSEGV that the kernel calls before what the program set, or
 *             set not. In libhakmem.so, the names by which programs set handlers: sigaction,
 *             signal and their kin.
 * Invariants  - The front comes with the first hak_os_fault_watch_raise; what has nothing to watch
 *               never has it. It stands over what handled the signal before, with the same flags,
 *               mask and thus stack, and calls it with the same arguments. Where nothing did, the
 *               process dies as it would have: the default action is set and the instruction runs
 *               again, so that the core shows it; a signal that was sent is sent anew with what it
 *               carried.
 *             - No program is told of it: libc's functions that ask for or set SIGSEGV's action
 *               find the program's own in force, and so do the constructors that dlopen runs. The
 *               next raise puts the front over what was set then.
 *             - Where it could be felt it is not raised: where the signal is ignored, since exec
 *               hands that on; in a Go program until its runtime has set its handlers, and for good
 *               once an action changed without libc's functions, as that runtime does it; in a
 *               program that confined itself; where the library is linked in and libc's functions
 *               are not ours. It needs no stack of its own and sets none aside.
 *             - Left: /proc/PID/status names the signal as caught; where no stack is left for any
 *               handler, the kernel ends the process by the same signal, but its core says so with
 *               SI_KERNEL in place of the address.
 * Argument    The kernel's action alone says whether the front is there, so a child of fork or
 *             vfork, which has actions of its own, finds the truth whatever memory says. The record
 *             of what stood before is written before the front is set, and a new one is taken for
 *             another action: a handler under way keeps its own.
 * Threads     any; signal handlers too.
 * Tests       tests/preload/guard_hit_preload.sh, tests/unit/os/fault_watch_test.c
 */
#ifndef HAK_OS_FAULT_WATCH_H
#define HAK_OS_FAULT_WATCH_H

#include "os/fault.h"

struct os_fault_watch {
    /* Whether the address must be reported. */
    bool (*is_watched)(const void *address);
    /* Reports; the process dies of the fault unless the program handles the signal. */
    void (*tell)(const struct os_fault *fault, bool is_fatal);
    bool unwinds; /* by hak_os_fault_unwind: the requester provides the stack that it takes */
};

/* What is watched for, and libc's sigaction; without it nothing is ever raised. By a constructor:
 * those of the libraries that the program was linked with have mostly run. */
void hak_os_fault_watch_start(const struct os_fault_watch *watch, void *libcs_sigaction);

/* Installs the front if it is missing and allowed: one system call if it is present. errno stays,
 * here and below. */
void hak_os_fault_watch_raise(void);

/* Removes it, and installs none for a while: a library is loaded, whose constructors may ask. */
void hak_os_fault_watch_lower(uint32_t rest_ms);

/* The program's own action is in force between the two. */
void hak_os_fault_watch_pause(void);
void hak_os_fault_watch_resume(void);

/* In the child of a fork: no other thread is at work. */
void hak_os_fault_watch_reset(void);

/* Before the program confines itself: the front goes, for good. */
void hak_os_fault_watch_end(void);

#endif
