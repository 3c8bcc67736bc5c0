/* SPDX-License-Identifier: MIT */
/* os/kernel_call.h - a system call by the processor's instruction.
 *
 * Owns        nothing.
 * Invariants  as syscall(2): -1, and errno says why, where the kernel refuses. What is written as
 *             syscall(...) in hakmem comes here, where malloc is hakmem's (base/compiler.h).
 * Threads     any; signal handlers, too.
 * Tests       tests/preload/own_syscall.c
 */
#ifndef HAK_OS_KERNEL_CALL_H
#define HAK_OS_KERNEL_CALL_H

long hak_kernel_call(long number, long a, long b, long c, long d, long e, long f);

#endif
