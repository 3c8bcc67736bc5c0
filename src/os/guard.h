/* SPDX-License-Identifier: MIT */
/* os/guard.h - pages that nobody may touch, within a budget.
 *
 * Owns        the number of guards raised. Each may split a mapping of the kernel's in three, and a
 *             process may have so many mappings only.
 * Invariants  a guard that was raised is lowered with the same bounds before its pages are used
 *             again; never more than a quarter of the mappings that the kernel allows are spent.
 * Threads     any; the ranges are the caller's.
 * Tests       tests/unit/os/guard_test.c
 */
#ifndef HAK_OS_GUARD_H
#define HAK_OS_GUARD_H

#include "base/compiler.h"

/* Takes the access to whole pages of ours away, their contents stay; false: the budget is spent or
 * the kernel refuses, and they are as they were. */
bool hak_guard_raise(void *start, size_t bytes);

/* Makes the pages of a raised guard usable again. */
void hak_guard_lower(void *start, size_t bytes);

/* The same without the count, for pages of which there are few; false: the kernel refuses. */
bool hak_guard_shut(void *start, size_t bytes);

/* Guards raised now. */
size_t hak_guard_count(void);

#endif
