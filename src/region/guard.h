/* SPDX-License-Identifier: MIT */
/* region/guard.h - pages that nobody may touch, within a budget.
 *
 * Owns        the number of guards raised. Each may split a mapping of the kernel's in three, which
 *             counts with what else divides the window (region/mappings.h).
 * Invariants  a guard that was raised is lowered with the same bounds before its pages are used
 *             again; never more than half of the mappings that hakmem may make are spent.
 * Threads     any; the ranges are the caller's.
 * Tests       tests/unit/region/guard_test.c
 */
#ifndef HAK_REGION_GUARD_H
#define HAK_REGION_GUARD_H

#include "base/compiler.h"

/* Takes the access to whole pages of ours away, their contents stay; false: the budget is spent or
 * the kernel refuses, and they are as they were. */
bool hak_guard_raise(void *start, size_t bytes);

/* Makes the pages of a raised guard usable again. */
void hak_guard_lower(void *start, size_t bytes);

#endif
