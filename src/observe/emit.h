/* SPDX-License-Identifier: MIT */
/* observe/emit.h - a snapshot as text.
 *
 * Owns        the form: one `name: value` a line, names as in the tables, all of them always.
 * Invariants  nothing is allocated.
 * Threads     any.
 * Tests       tests/unit/observe/emit_test.c
 */
#ifndef HAK_OBSERVE_EMIT_H
#define HAK_OBSERVE_EMIT_H

#include "base/text.h"
#include "observe/snapshot.h"

/* Enough for every line of the text form. */
#define HAK_EMIT_TEXT_BYTES 4096

void hak_emit_text(const struct snapshot *snapshot, struct text *text);

#endif
