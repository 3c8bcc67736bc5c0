/* SPDX-License-Identifier: MIT */
/* region/guard.h - guard pages, within a budget.
 *
 * Owns        the number of guards raised. Each may split a mapping of the kernel's in three, which
 *             counts with what else divides the window (region/mappings.h).
 * Invariants  a raised guard is lowered with the same bounds before its pages are reused; never
 *             more than half of the mappings that hakmem may make are used. Lowering can fail: the
 *             pages count as data of the program's again (RLIMIT_DATA), and another part of the
 *             process may have used up its mappings. What stays raised is not reused.
 * Threads     any; the ranges are the caller's.
 * Tests       tests/unit/region/guard_test.c
 */
#ifndef HAK_REGION_GUARD_H
#define HAK_REGION_GUARD_H

#include "base/compiler.h"

/* Makes whole pages of ours inaccessible and keeps their contents; false: the budget is used up or
 * the kernel refused, and they are unchanged. */
bool hak_guard_raise(void *start, size_t bytes);

/* Makes the pages of `count` raised guards, side by side, usable again; false: the kernel refused,
 * and they stay as they are. */
bool hak_guard_lower(void *start, size_t bytes, uint32_t count);

/* The same for one that was raised just now, on behalf of nobody else. */
void hak_guard_undo(void *start, size_t bytes);

#endif
