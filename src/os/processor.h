/* SPDX-License-Identifier: MIT */
/* os/processor.h - where a thread runs.
 *
 * Owns        nothing.
 * Invariants  a hint: the thread may run elsewhere by the time that it is used. Nothing is asked of
 *             the kernel in a process that has confined itself.
 * Threads     any.
 * Tests       tests/unit/os/processor_test.c
 */
#ifndef HAK_OS_PROCESSOR_H
#define HAK_OS_PROCESSOR_H

#include "base/compiler.h"

/* Number of the processor that the thread runs on (sched_getcpu(3): libc reads it from memory that
 * the kernel keeps up to date, Linux 4.18 and glibc 2.35, or asks the vDSO); 0 where that is not
 * known. */
uint32_t hak_os_processor(void);

#endif
