/* SPDX-License-Identifier: MIT */
/* os/unwind.h - the callers, by the tables that compilers write for exceptions (.eh_frame).
 *
 * Owns        nothing.
 * Invariants  no lock is taken and nothing allocated. Tables are found by _dl_find_object (glibc
 *             2.35 and newer), which neither waits nor locks, in handlers and beside dlopen and
 *             dlclose either; without it, and for code without tables (that of a JIT compiler),
 *             frame pointers are followed (os/frames.h), and nothing else from there on. Tables are
 *             read only of code that is on this thread's stack, which nobody may unload; what they
 *             said before is kept, and compared with them at each use (os/rules.h). Of the
 *             stack a word is read only when its page can be read, and only above the last frame:
 *             tables that lie end the walk, they never make it fault or run for ever.
 * Stack       about 1 KiB; it is bounded.
 * Threads     any, each its own stack.
 * Tests       tests/unit/os/unwind_test.c
 */
#ifndef HAK_OS_UNWIND_H
#define HAK_OS_UNWIND_H

#include "os/frames.h"

/* Whether a call leaves its return address on the stack, right below where its caller goes on. */
#if defined(__x86_64__)
#define HAK_OS_RETURNS_ON_STACK true
#else
#define HAK_OS_RETURNS_ON_STACK false
#endif

/* Fills `addresses` with return addresses, innermost first, from the caller's on; the first ones
 * are left out as long as they are hakmem's own: of its library, or of its object in a program
 * (os/own_code.h). Returns how many. */
uint32_t hak_os_unwind(struct os_caller caller, uintptr_t *addresses, uint32_t most);

/* The same from a frame on that a signal interrupted, whose registers are known: its instruction,
 * then return addresses. The frame is changed. */
struct dwarf_frame;
uint32_t hak_os_unwind_from(struct dwarf_frame *frame, uintptr_t *addresses, uint32_t most);

/* The same, with the stack pointer that each frame goes on with; 0: it is not known. */
uint32_t hak_os_unwind_stacks(struct os_caller caller, uintptr_t *addresses, uintptr_t *stacks,
                              uint32_t most);

/* The loaded file that code on this thread's stack belongs to; false: none is known. */
struct os_module {
    uintptr_t start; /* of what the file has mapped */
    uintptr_t end;
    uintptr_t bias;   /* addresses less those that the file has for itself */
    const char *path; /* "": the program */
};
bool hak_os_module_of(uintptr_t address, struct os_module *module);

/* Where the program's file is; "": it cannot be told. */
void hak_os_program_path(char *path, size_t bytes);

#endif
