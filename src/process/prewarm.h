/* SPDX-License-Identifier: MIT */
/* process/prewarm.h - what is made ready before main.
 *
 * Owns        the constructor that begins the process, loads what earlier runs learned, and takes
 *             and touches the memory of option prewarm.
 * Invariants  live and warm memory does not fall below `prewarm` bytes again: row prewarm_bytes of
 *             the policy is what was touched.
 * Threads     one, before the program's own code; tests at any time.
 * Tests       tests/unit/api/free_policy_test.c, tests/unit/api/huge_test.c
 */
#ifndef HAK_PROCESS_PREWARM_H
#define HAK_PROCESS_PREWARM_H

/* Takes and touches the memory of option prewarm, and the records that it will need; nothing if the
 * limit or the kernel does not admit so much. At most nine tenths of the memory that is available
 * are touched; one line says so, and the row of the policy follows. */
void hak_prewarm(void);

#endif
