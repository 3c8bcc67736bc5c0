/* SPDX-License-Identifier: MIT */
/* tests/faults.h - system calls that fail, for tests of builds that can let them.
 *
 * Owns        nothing.
 * Invariants  none.
 * Threads     one.
 * Tests       those that include it.
 */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include "check.h"
#include "os/os_fault.h"

/* Leaves the test in builds without faults. */
static inline void need_faults(void)
{
    if (HAK_CHECK_LEVEL < 2)
        SKIP("faults are compiled away below check level 2");
}

/* Each n-th call of these kinds fails from now on. */
static inline void fail_every(uint32_t n, uint32_t kinds)
{
    hak_store_relaxed(&hak_os_fault.kinds, kinds);
    hak_os_fault_every(n);
}

#endif
