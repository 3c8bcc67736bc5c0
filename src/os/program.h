/* SPDX-License-Identifier: MIT */
/* os/program.h - what the headers of the running program say.
 *
 * Owns        nothing.
 * Invariants  read where the kernel mapped them; no file is opened.
 * Threads     any.
 * Tests       tests/unit/os/program_test.c
 */
#ifndef HAK_OS_PROGRAM_H
#define HAK_OS_PROGRAM_H

#include "base/compiler.h"

/* True in a segment of the program: its code, constants, and variables. */
bool hak_os_is_in_program(uintptr_t address);

/* An address of its code. */
uintptr_t hak_os_program_entry(void);

/* The last part of the path that it was started by, of a script its own; empty: not known. */
const char *hak_os_program_name(void);

/* True when it has Go's runtime, which sets handlers of signals without libc. */
bool hak_os_program_is_go(void);

#endif
