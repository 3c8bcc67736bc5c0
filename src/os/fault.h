/* SPDX-License-Identifier: MIT */
/* os/fault.h - what a handler is told of a faulting instruction.
 *
 * Owns        nothing.
 * Invariants  what the processor or the emulator does not tell is ACCESS_UNKNOWN, or 0.
 * Threads     any, in a handler of SIGSEGV or SIGBUS.
 * Tests       tests/preload/guard_hit_preload.sh, tests/preload/crash_preload.sh
 */
#ifndef HAK_OS_FAULT_H
#define HAK_OS_FAULT_H

#include "base/compiler.h"

#define HAK_OS_FAULT_FRAMES 6u

enum access { ACCESS_UNKNOWN, ACCESS_READ, ACCESS_WRITE, ACCESS_EXECUTE };

struct os_fault {
    const void *address;
    enum access access;
    /* The instruction, then as many calls as frame pointers lead to; 0: no more. */
    uintptr_t places[HAK_OS_FAULT_FRAMES];
};

/* Fills all but the address, from the third argument of a handler with SA_SIGINFO. */
void hak_os_fault_read(struct os_fault *fault, const void *context);

/* Reads the calls again, by unwind tables where they lead farther than frame pointers: it takes
 * 2 KiB of the handler's stack. */
void hak_os_fault_unwind(struct os_fault *fault, const void *context);

#endif
