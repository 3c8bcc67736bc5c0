/* SPDX-License-Identifier: MIT */
/* os/crash.h - a word before the program dies.
 *
 * Owns        the handlers of SIGSEGV, SIGBUS and SIGABRT, the stack they run on in the first
 *             thread, and what handled the signals before.
 * Invariants  who handled a signal before goes on handling it; where nobody did, the process ends
 *             by the signal as it would have, with its core. A handler that the program sets later
 *             takes the signal over. A second fault, in the report itself, ends the process.
 * Threads     set before main; other threads run the handler on their own stacks unless they have
 *             set one aside.
 * Tests       tests/preload/crash_preload.sh
 */
#ifndef HAK_OS_CRASH_H
#define HAK_OS_CRASH_H

#include "base/compiler.h"

struct crash {
    int signal;
    const char *name; /* "SIGSEGV" */
    bool is_fault;    /* an instruction raised it, at `address` */
    bool is_refused;  /* the address is mapped, but not for this */
    const void *address;
};

/* Calls `report` once for a crash, then passes the signal on; false: the kernel refuses. */
bool hak_os_crash_listen(void (*report)(const struct crash *crash));

#endif
