/* SPDX-License-Identifier: MIT */
/* stats/guard_report.h - the report of an access to the guard page of a sampled block.
 *
 * Owns        the lines: first `hakmem: <what>: pointer 0x..., block of N bytes, <access>`, then
 *             where that was, where the block was allocated, and where it was freed, in the form
 *             that addr2line takes.
 * Invariants  nothing is allocated, no lock is taken, little of the stack is used: it may be a
 *             handler's own. In programs that handle the signal and continue, only the first few
 *             hits are reported.
 * Threads     any, in a handler.
 * Tests       tests/preload/guard_hit_preload.sh
 */
#ifndef HAK_STATS_GUARD_REPORT_H
#define HAK_STATS_GUARD_REPORT_H

#include "os/fault.h"

/* Reports a fault at an address that hak_guarded_holds, unless it was reported already. */
void hak_guard_report(const struct os_fault *fault);

#endif
