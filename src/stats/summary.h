/* SPDX-License-Identifier: MIT */
/* stats/summary.h - a snapshot summarised in a few lines.
 *
 * Owns        HAK_HELD_TABLE, the parts of what hakmem holds, and when which option is worth a try.
 * Invariants  the parts add up to what is held: the window without what has no memory behind it,
 *             and hakmem's own records. More is resident only where huge pages brought it in; less,
 *             where blocks were not touched yet or pages of sparse slabs went back. Integers only.
 *             Advice is given for a part of a quarter of what is held and 4 MiB at least, and names
 *             an option only where its value in force is a cause.
 * Threads     pure.
 * Tests       tests/unit/stats/summary_test.c, tests/cli/stats_cli.sh
 */
#ifndef HAK_STATS_SUMMARY_H
#define HAK_STATS_SUMMARY_H

#include "stats/line_writer.h"

/* A summary begins so, and its last line. */
#define HAK_SUMMARY_HEAD "hakmem statistics"
#define HAK_SUMMARY_LAST "advice"

/* kind, word, meaning */
#define HAK_HELD_TABLE(X)                                                                          \
    X(LIVE, "live", "blocks of the program")                                                       \
    X(FREE, "free", "in slabs, beside live blocks of that size")                                   \
    X(CACHES, "cached", "free blocks in caches")                                                   \
    X(RETURNING, "returning", "freed, in quarantine or not collected yet")                         \
    X(KEPT, "kept", "free, resident, kept for reuse")                                              \
    X(RECORDS, "records", "hakmem's own")

enum held_part {
#define X(kind, word, meaning) HELD_##kind,
    HAK_HELD_TABLE(X)
#undef X
        HELD_COUNT
};

/* Bytes of one part, and of all. */
uint64_t hak_held_part(const struct snapshot *snapshot, enum held_part part);
uint64_t hak_held_sum(const struct snapshot *snapshot);

const char *hak_held_word(enum held_part part);

/* Which option would make the process smaller, and why; "": none is known. */
const char *hak_summary_advice(const struct snapshot *snapshot);

/* Adds the lines. */
void hak_summary_add(struct line_writer *out, const struct snapshot *snapshot);

#endif
