/* SPDX-License-Identifier: MIT */
/* stats/refusal.h - the report of the first request that a limit refuses.
 *
 * Owns        whether it has been printed. A program that dies of a NULL seldom reports why it got
 *             one.
 * Invariants  one line for a process and its children by fork, and nothing where the kernel
 *             refused, there is no limit, or no limit would have helped, or once the process
 *             confined itself, whose filter may kill for what a line takes. Nothing is allocated.
 * Threads     any.
 * Tests       tests/unit/stats/refusal_test.c, tests/preload/refusal_preload.sh
 */
#ifndef HAK_STATS_REFUSAL_H
#define HAK_STATS_REFUSAL_H

#include "base/compiler.h"

/* After a request for `bytes` was refused. Changes errno. */
void hak_refusal_tell(size_t bytes);

#endif
