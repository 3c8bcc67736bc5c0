/* SPDX-License-Identifier: MIT */
/* os/epilogue.h - frames of code without tables, left by what the code is about to do.
 *
 * Owns        nothing.
 * Invariants  only instructions that are known in full are followed: where a function goes on with
 *             leaving its frame and returning, as the trampolines that CPython makes for its
 *             functions (-X perf), its caller is what these instructions lead to; on RISC-V, too,
 *             where a signal handler returns to the kernel. Anything else is not guessed at.
 *             Memory is read by the frame's own function, which says what can be read.
 * Threads     pure but for that.
 * Tests       tests/unit/os/epilogue_test.c
 */
#ifndef HAK_OS_EPILOGUE_H
#define HAK_OS_EPILOGUE_H

#include "os/dwarf.h"

/* Makes the frame its caller's; false: it is unchanged, and its code is of another kind. */
bool hak_os_epilogue_step(struct dwarf_frame *frame);

#endif
