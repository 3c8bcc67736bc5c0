/* SPDX-License-Identifier: MIT */
/* os/dwarf.h - one step of a walk up the stack: DWARF's call frame information.
 *
 * Owns        struct dwarf_frame, and what the tables say of it (DWARF 5, 6.4; .eh_frame and
 *             .eh_frame_hdr as the Linux Standard Base has them).
 * Invariants  what is not understood ends the walk. Of expressions only those are known that the
 *             frames of signal handlers need.
 * Threads     any.
 * Tests       tests/unit/os/unwind_test.c
 */
#ifndef HAK_OS_DWARF_H
#define HAK_OS_DWARF_H

#include "base/compiler.h"

/* By their numbers in DWARF. */
#if defined(__aarch64__)
#define HAK_DWARF_REGISTERS 33u
#define HAK_DWARF_FRAME_POINTER 29u
#define HAK_DWARF_STACK_POINTER 31u
#elif defined(__riscv)
#define HAK_DWARF_REGISTERS 32u
#define HAK_DWARF_FRAME_POINTER 8u
#define HAK_DWARF_STACK_POINTER 2u
#else
#define HAK_DWARF_REGISTERS 17u
#define HAK_DWARF_FRAME_POINTER 6u
#define HAK_DWARF_STACK_POINTER 7u
#endif

struct dwarf_frame {
    uintptr_t registers[HAK_DWARF_REGISTERS];
    uintptr_t address;   /* where it goes on */
    bool is_interrupted; /* by a signal: the address is no return address */
    bool (*read)(uintptr_t address, uintptr_t *word);
};

/* Makes the frame its caller's, by the .eh_frame_hdr of its code. False: it is the outermost, or
 * the tables do not say; then it is undefined. */
bool hak_dwarf_step(struct dwarf_frame *frame, const unsigned char *header);

/* Whether the tables have an entry for the code that the frame is in. */
bool hak_dwarf_covers(const struct dwarf_frame *frame, const unsigned char *header);

#endif
