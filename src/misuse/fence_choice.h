/* SPDX-License-Identifier: MIT */
/* misuse/fence_choice.h - which blocks the option `fence` names.
 *
 * Owns        the parsed option, and the calls that were looked up for it.
 * Invariants  a call is compared as reports print it, FILE+OFFSET: the end of the file's
 *             path is enough. What was found is kept by address, of as many calls as there is room
 *             for; code that is unloaded and other code at its place may be taken for each other.
 * Threads     any; handlers too.
 * Tests       tests/unit/misuse/fence_choice_test.c
 */
#ifndef HAK_MISUSE_FENCE_CHOICE_H
#define HAK_MISUSE_FENCE_CHOICE_H

#include "misuse/guard_record.h"

/* Reads the option; false: it names nothing. Once, at the start of the process. */
bool hak_fence_choice_start(void);

/* True when blocks of that size may be named; the rest is then up to the calls. */
bool hak_fence_names_bytes(size_t bytes);

/* True when calls do not matter, or one of these is named. */
bool hak_fence_names_calls(const struct guarded_trace *trace);

#endif
