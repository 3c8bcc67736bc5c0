/* SPDX-License-Identifier: MIT */
/* cli/statistics.h - statistics that hakmem wrote, read back as names and numbers.
 *
 * Owns        struct report: what one process wrote at one time.
 * Invariants  the raw form, JSON, XML and OpenMetrics give the same names, those of the raw form:
 *             "locks":{"span":{"waits":1}} is waits_span. The text form is for people: it is
 *             checked for its ends and kept as it is. Any bytes may be read; what is no statistics,
 *             or cut, is said with its line.
 * Threads     one.
 * Tests       tests/cli/stats_cli.sh, tests/preload/forms_preload.py
 */
#ifndef HAK_CLI_STATISTICS_H
#define HAK_CLI_STATISTICS_H

#include "stats/snapshot.h"

#define REPORT_NAME_BYTES 96

struct number {
    char name[REPORT_NAME_BYTES];
    uint64_t value;
    bool is_known; /* it is in the snapshot */
};

struct report {
    struct number *numbers;
    size_t count;
    size_t room;
    const char *text; /* of a report in text form, which has no numbers; NULL: it has numbers */
    size_t text_bytes;
};

/* Where a text is being read. */
struct reader {
    const char *at;
    const char *end;
    const char *wrong; /* what is wrong where reading stopped; NULL: nothing */
    uint32_t line;
};

/* Says what is wrong, unless something is already; returns false. */
bool reader_fail(struct reader *reader, const char *what);

/* Goes past white space. */
void reader_skip_space(struct reader *reader);

/* Whether the rest begins so. */
bool reader_sees(const struct reader *reader, const char *word);

/* Reads digits, at least one, as a number; false: there are none, or it is too large. */
bool reader_number(struct reader *reader, uint64_t *value);

/* Adds a number; false: there is no memory, which is said. */
bool report_add(struct reader *reader, struct report *report, const char *name, uint64_t value);

/* Adds the number of what is said about caches (os/rseq.h). */
bool report_add_reason(struct reader *reader, struct report *report, const char *meaning);

/* The value of a name; `otherwise` if it is not there. */
uint64_t report_find(const struct report *report, const char *name, uint64_t otherwise);

/* Reads the next report, in any form, into an empty one; false: there is none, or what is there is
 * wrong. */
bool report_read(struct reader *reader, struct report *report);

/* Read one form, from its first character on; false: it is wrong. */
bool report_read_json(struct reader *reader, struct report *report);
bool report_read_xml(struct reader *reader, struct report *report);
bool report_read_openmetrics(struct reader *reader, struct report *report);

/* Fills a snapshot with the numbers that it has room for, and marks them as known. */
void report_to_snapshot(struct report *report, struct snapshot *snapshot);

#endif
