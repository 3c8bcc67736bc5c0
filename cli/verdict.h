/* SPDX-License-Identifier: MIT */
/* cli/verdict.h - where a process's memory is, in one sentence.
 *
 * Owns        which part is worth naming, and what would make it smaller.
 * Invariants  what is named has a share of a tenth of what is held at least; what is advised
 *             changes that part where its present value is a cause (stats/summary.h).
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAK_CLI_VERDICT_H
#define HAK_CLI_VERDICT_H

#include "target.h"

void verdict_write(char *line, size_t line_bytes, const struct target *target);

#endif
