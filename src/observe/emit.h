/* SPDX-License-Identifier: MIT */
/* observe/emit.h - a snapshot as text and as XML.
 *
 * Owns        the forms. Text: one `name: value` a line, named as in the tables, always all.
 *             XML: glibc's malloc_info elements for those who read them, then <hakmem> with a
 *             <counter> for each of the same names and a <class> for each size class in use.
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

/* The XML piece by piece, each at most a few hundred characters. */
typedef void emit_writer(void *target, const char *piece, size_t bytes);
void hak_emit_xml(const struct snapshot *snapshot, emit_writer *write, void *target);

#endif
