/* SPDX-License-Identifier: MIT */
/* os/frames.h - the callers, by the chain of frame pointers.
 *
 * Owns        nothing.
 * Invariants  a link is followed only if it is aligned as frames are, lies above the last one and
 *             not far, and can be read: a register that holds something else ends the chain or is
 *             ignored, it never faults. Programs without frame pointers have chains of no links.
 *             Calls: futex, once for each page of the stack that is looked at.
 * Threads     any, each its own stack.
 * Tests       tests/unit/os/frames_test.c
 */
#ifndef HAK_OS_FRAMES_H
#define HAK_OS_FRAMES_H

#include "base/compiler.h"

/* Where a request came from: what it returns to, and the frame of the function that it called. */
struct os_caller {
    uintptr_t address;
    uintptr_t frame;
};
#define HAK_OS_CALLER()                                                                            \
    ((struct os_caller){(uintptr_t)__builtin_return_address(0),                                    \
                        (uintptr_t)__builtin_frame_address(0)})

/* The return addresses of the frames from `at` on, which lies above `below`; returns how many. */
uint32_t hak_os_frames_follow(uintptr_t at, uintptr_t below, uintptr_t *addresses, uint32_t count);

/* Fills `addresses` with return addresses, innermost first and 0 behind the last: `caller`, then
 * those that the chain from `frame` leads to, which is the frame that `caller` returns from. */
void hak_os_frames(uintptr_t caller, uintptr_t frame, uintptr_t *addresses, uint32_t count);

/* The same of a thread that was interrupted with its stack pointer at `stack` and `frame` in its
 * frame register, which may hold anything: the return addresses of that frame and those above. */
void hak_os_frames_above(uintptr_t stack, uintptr_t frame, uintptr_t *addresses, uint32_t count);

/* True when the word at `address`, which is even, can be read; or when it certainly cannot. A
 * filter of system calls may leave that open. */
bool hak_os_is_readable(uintptr_t address);
bool hak_os_is_unreadable(uintptr_t address);

#endif
