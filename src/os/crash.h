/* SPDX-License-Identifier: MIT */
/* os/crash.h - handlers of the signals by which a program crashes.
 *
 * Owns        the handlers of SIGSEGV, SIGBUS and SIGABRT, the stacks they run on, one for each
 *             thread that has none set aside (sigaltstack(2)), and what handled the signals before.
 * Invariants  a previous handler of the signal is still called; without one, the process ends by
 *             the signal as it would have, with its core. A handler that the program sets later
 *             replaces this one. A second fault, in the report itself, ends the process; another
 *             thread's waits for the report, for a second at most. A stack that the program set
 *             is never replaced; one of ours that it replaced is freed at the thread's end like any
 *             other, since the kernel no longer uses it.
 * Threads     set before main. Other threads get their stack with their heap, at their first
 *             allocation; until then, and after their last destructor, they have none.
 * Tests       tests/preload/crash_preload.sh
 */
#ifndef HAK_OS_CRASH_H
#define HAK_OS_CRASH_H

#include "os/fault.h"

struct crash {
    int signal;
    const char *name;      /* "SIGSEGV" */
    bool is_fault;         /* an instruction raised it */
    bool is_refused;       /* the address is mapped, but not for this */
    struct os_fault fault; /* all but the address and the access are right for sent signals, too */
};

/* Calls `report` once for a crash, then passes the signal on; false: the kernel refuses. */
bool hak_os_crash_listen(void (*report)(const struct crash *crash));

/* Sets a stack aside for the calling thread, and takes it back; nothing unless a report was
 * requested. errno stays. */
void hak_os_crash_thread_begin(void);
void hak_os_crash_thread_end(void);

#endif
