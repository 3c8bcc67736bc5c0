/* SPDX-License-Identifier: MIT */
/* stats/emit.h - a snapshot as text, JSON, XML and OpenMetrics.
 *
 * Owns        the forms. Text: one `name: value` a line, named as in the tables, always all, and
 *             five lines for each size class in use, and a few for each cache and heap. JSON: one
 *             line, one object; its schema is docs/stats.schema.json. XML: glibc's malloc_info
 *             elements for those who read them, then <hakmem> with a <counter> for each of the same
 *             names and a <class> for each size class in use. OpenMetrics: hakmem_NAME, the sizes
 *             and locks as labels.
 * Invariants  nothing is allocated; every form holds every number of the tables, those of
 *             HAK_SNAPSHOT_EXACT_TABLE and the classes' requests where they were counted.
 * Threads     any.
 * Tests       tests/unit/stats/emit_test.c, tests/preload/forms_preload.py
 */
#ifndef HAK_STATS_EMIT_H
#define HAK_STATS_EMIT_H

#include "stats/snapshot.h"

/* Changes when a reader of the JSON form would have to. */
#define HAK_EMIT_JSON_SCHEMA 1

/* In the order of the option stats. */
enum emit_form { EMIT_NOTHING, EMIT_TEXT, EMIT_JSON, EMIT_XML, EMIT_OPENMETRICS };

/* Takes a form piece by piece, each at most a few hundred characters. */
typedef void emit_writer(void *target, const char *piece, size_t bytes);

void hak_emit(enum emit_form form, const struct snapshot *snapshot, emit_writer *write,
              void *target);

void hak_emit_text(const struct snapshot *snapshot, emit_writer *write, void *target);
void hak_emit_json(const struct snapshot *snapshot, emit_writer *write, void *target);
void hak_emit_xml(const struct snapshot *snapshot, emit_writer *write, void *target);
void hak_emit_openmetrics(const struct snapshot *snapshot, emit_writer *write, void *target);

/* Whether a size class has anything to tell. */
HAK_INLINE bool hak_emit_is_in_use(const struct snapshot_class *of)
{
    return (of->slabs | of->live_blocks | of->taken_blocks | of->requests | of->reallocs) != 0;
}

#endif
