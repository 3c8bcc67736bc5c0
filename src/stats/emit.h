/* SPDX-License-Identifier: MIT */
/* stats/emit.h - a snapshot in each form.
 *
 * Owns        the forms. Text: for people, the summary (stats/summary.h) and tables with units,
 *             without zeros. Raw: `name: value` a line, all numbers, named as in the tables, and
 *             last `rows`, how many lines came before. JSON: one object in one line; its schema is
 *             docs/stats.schema.json. XML: glibc's malloc_info elements, then <hakmem> with a
 *             <counter> for each number and elements for classes, caches and heaps. OpenMetrics:
 *             hakmem_NAME, with the size, lock, cache or heap as label.
 * Invariants  nothing is allocated. Every form but text holds every number of the tables; those of
 *             HAK_SNAPSHOT_EXACT_TABLE and the classes' requests where they were counted.
 * Threads     any.
 * Tests       tests/unit/stats/emit_test.c, tests/preload/forms_preload.py
 */
#ifndef HAK_STATS_EMIT_H
#define HAK_STATS_EMIT_H

#include "stats/snapshot.h"

/* Changes when a reader of the JSON form would have to. */
#define HAK_EMIT_JSON_SCHEMA 1

/* As HAK_CONF_NEVER_MS; -1 in all forms but text. */
#define HAK_LINE_NEVER_MS (UINT64_MAX / 4)

/* The last row of the raw form: the number of rows before it. */
#define HAK_EMIT_RAW_LAST "rows"

/* The last line of the text form begins so. */
#define HAK_EMIT_TEXT_LAST "Not shown: "

/* In the order of the option stats; the summary is what malloc_stats prints. */
enum emit_form {
    EMIT_NOTHING,
    EMIT_TEXT,
    EMIT_RAW,
    EMIT_JSON,
    EMIT_XML,
    EMIT_OPENMETRICS,
    EMIT_SUMMARY
};

/* Takes a form piece by piece, each at most a few hundred characters. */
typedef void emit_writer(void *target, const char *piece, size_t bytes);

void hak_emit(enum emit_form form, const struct snapshot *snapshot, emit_writer *write,
              void *target);

void hak_emit_text(const struct snapshot *snapshot, emit_writer *write, void *target);
/* The text form, also with what is 0 and with the policy. */
enum emit_detail { EMIT_SHORT, EMIT_WHOLE };
void hak_emit_tables(const struct snapshot *snapshot, enum emit_detail detail, emit_writer *write,
                     void *target);

void hak_emit_raw(const struct snapshot *snapshot, emit_writer *write, void *target);
void hak_emit_json(const struct snapshot *snapshot, emit_writer *write, void *target);
void hak_emit_xml(const struct snapshot *snapshot, emit_writer *write, void *target);
void hak_emit_openmetrics(const struct snapshot *snapshot, emit_writer *write, void *target);
void hak_emit_summary(const struct snapshot *snapshot, emit_writer *write, void *target);

/* Whether a size class has anything to show. */
HAK_INLINE bool hak_emit_is_in_use(const struct snapshot_class *of)
{
    return (of->slabs | of->live_blocks | of->taken_blocks | of->requests | of->reallocs) != 0;
}

#endif
