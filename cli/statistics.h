/* SPDX-License-Identifier: MIT */
/* cli/statistics.h - statistics that hakmem wrote, read back as names and numbers.
 *
 * Owns        struct report: what one process wrote at one time.
 * Invariants  JSON and text give the same names: "locks":{"span":{"waits":1}} is waits_span, and a
 *             size class is class_64_slabs and so on. Any bytes may be read; what is no statistics
 *             is said with its line.
 * Threads     one.
 * Tests       tests/cli/stats_cli.sh
 */
#ifndef HAK_CLI_STATISTICS_H
#define HAK_CLI_STATISTICS_H

#include "base/compiler.h"

#define REPORT_NAME_BYTES 96

struct number {
    char name[REPORT_NAME_BYTES];
    uint64_t value;
};

struct report {
    struct number *numbers;
    size_t count;
    size_t room;
};

/* Where a text is being read. */
struct reader {
    const char *at;
    const char *end;
    const char *wrong; /* what is wrong where reading stopped; NULL: nothing */
    uint32_t line;
};

/* Adds a number; false: there is no memory. */
bool report_add(struct report *report, const char *name, uint64_t value);

/* The value of a name; `otherwise` if it is not there. */
uint64_t report_find(const struct report *report, const char *name, uint64_t otherwise);

/* Reads the next report, in JSON or as text, into an empty one; false: there is none, or what is
 * there is wrong. */
bool report_read(struct reader *reader, struct report *report);

/* Reads a JSON object from its opening brace on; false: it is wrong. */
bool report_read_json(struct reader *reader, struct report *report);

#endif
