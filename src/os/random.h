/* SPDX-License-Identifier: MIT */
/* os/random.h - random bytes from the kernel.
 *
 * Owns        nothing.
 * Invariants  never waits, and never fails: without getrandom(2) the bytes are those that the
 *             kernel gave the process when it started it.
 * Threads     any.
 * Tests       tests/unit/misuse/harden_test.c
 */
#ifndef HAK_OS_RANDOM_H
#define HAK_OS_RANDOM_H

#include "base/compiler.h"

/* Another number each time. */
uint64_t hak_os_random(void);

#endif
