/* SPDX-License-Identifier: MIT */
/* cli/profiles/rows.h - profiles as tables of a terminal.
 *
 * Owns        struct row: all sites of one function, or of one line in it, added up.
 * Invariants  no line is wider than the terminal, but 40 columns are used always; every number of a
 *             row is the sum over its sites.
 * Threads     one.
 * Tests       tests/cli/profile_cli.sh, tests/cli/board_cli.sh
 */
#ifndef HAK_CLI_PROFILES_ROWS_H
#define HAK_CLI_PROFILES_ROWS_H

#include "profiles/model.h"

#include <stdio.h>

struct row {
    struct frame at; /* where the memory is asked for */
    char *callers;   /* of the largest of its sites: "< f < g", from the inside outwards */
    char *freed_by;  /* the same of the last free of a site's block; NULL: not known */
    uint32_t site_count;
    uint64_t most_bytes; /* of one of its sites */
    uint64_t values[VALUE_COUNT];
    uint64_t samples;
    uint64_t oldest_ns, grown_ns;
    /* Of a difference: what there was before. */
    uint64_t before_bytes, before_objects;
};

struct rows {
    struct row *start;
    uint32_t count;
};

/* Lines of one program, or functions, which differ less from one version to the next. */
enum row_key { BY_LINE, BY_FUNCTION };

/* All locations have lines. */
void rows_make(struct rows *rows, const struct profile *profile, enum row_key key);
void rows_free(struct rows *rows);

/* Adds to each row what `before` has for the same place; what is there only gets a row without
 * values. Both were made by one key; names of `before` become those of `profile`. */
void rows_compare(struct rows *rows, struct profile *profile, const struct rows *before,
                  const struct profile *before_profile);

/* Growth in bytes, negative where a row shrank. */
int64_t row_growth(const struct row *row);

enum order { ORDER_LIVE, ORDER_ALLOCATED, ORDER_GROWTH };
void rows_sort(struct rows *rows, enum order order);

struct table {
    FILE *to;
    uint32_t columns;
    uint32_t rows_most; /* so many, and how many more there are */
    bool has_colours;
};

/* For standard output: its width, COLUMNS, or 80. */
void table_begin(struct table *table);

void table_profile(const struct table *table, const struct rows *rows,
                   const struct profile *profile);
/* The same with what a black box tells of growth: the age of the oldest block, and growth since. */
void table_box(const struct table *table, const struct rows *rows, const struct profile *profile);
/* What lives since `least_ns` at least. */
void table_leaks(const struct table *table, const struct rows *rows, const struct profile *profile,
                 uint64_t least_ns);
/* `seconds` 0: without a rate. */
void table_growth(const struct table *table, const struct rows *rows, const struct profile *profile,
                  double seconds);

/* "1.5 s", "3 min", "2.1 d" in at most 8 columns. */
char *life_text(char *text, size_t bytes, uint64_t ns);

#endif
