/* SPDX-License-Identifier: MIT */
/* os/scratch.h - memory for one function call, of the kernel's.
 *
 * Owns        nothing.
 * Invariants  for what is too large for the stack of a small thread (PTHREAD_STACK_MIN is 16 KiB):
 *             nothing is shared, so signal handlers, forks and threads do not wait for each other.
 *             Allocates nothing, keeps errno, and is not counted among hakmem's calls: it is asked
 *             for where these are reported.
 * Threads     any, signal handlers too.
 * Tests       tests/unit/os/scratch_test.c, tests/preload/small_stacks.c
 */
#ifndef HAK_OS_SCRATCH_H
#define HAK_OS_SCRATCH_H

#include "base/compiler.h"

/* Zeroed memory; NULL: the kernel refuses. */
void *hak_os_scratch(size_t bytes);

/* The end of it. */
void hak_os_scratch_end(void *start, size_t bytes);

#endif
