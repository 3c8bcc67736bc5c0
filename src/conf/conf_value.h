/* SPDX-License-Identifier: MIT */
/* conf/conf_value.h - what the value of an option looks like: read, printed, described.
 *
 * Owns        hak_conf_rows, the option table as data.
 * Invariants  a value that was read is within the range of its row. Nothing here writes anywhere
 *             but to what the caller gave, so that any bytes can be tried.
 * Threads     constant data and pure functions.
 * Tests       tests/unit/conf/conf_value_test.c
 */
#ifndef HAK_CONF_CONF_VALUE_H
#define HAK_CONF_CONF_VALUE_H

#include "base/text.h"
#include "conf/conf_table.h"

/* A text may have one byte less. */
#define HAK_CONF_TEXT_BYTES 256

enum conf_kind {
    CONF_KIND_BYTES,
    CONF_KIND_MS,
    CONF_KIND_COUNT,
    CONF_KIND_CHOICE,
    CONF_KIND_SET,
    CONF_KIND_TEXT
};

enum conf_option {
#define X(name, kind, initial, least, most, choices, meaning) CONF_##name,
    HAK_CONF_TABLE(X)
#undef X
        CONF_COUNT
};

struct conf_row {
    const char *name;
    enum conf_kind kind;
    int64_t initial;
    int64_t least;
    int64_t most;
    const char *choices;
};
extern const struct conf_row hak_conf_rows[CONF_COUNT];

/* The option of that name, in lower or upper case, with or without HAKMEM_ before it; CONF_COUNT:
 * there is none. */
enum conf_option hak_conf_find_bytes(const char *name, size_t name_bytes);

/* Levenshtein's distance between a typed word and a name in lower case of at most 24 letters: the
 * letters to change, remove or add. */
size_t hak_conf_distance(const char *text, size_t bytes, const char *name);

/* The name, of `count` in lower case, that is probably meant by a word: two in three letters are
 * right; `count`: none is near. */
int hak_conf_nearest_of(const char *word, size_t word_bytes, const char *(*name_of)(int index),
                        int count);

/* The option probably meant by an unknown name; CONF_COUNT: none is near. */
enum conf_option hak_conf_nearest(const char *name, size_t name_bytes);

/* Reads a value; false: it is not one of the row's, and *number is undefined. A text has number
 * 0. */
bool hak_conf_parse(const struct conf_row *row, const char *value, size_t value_bytes,
                    int64_t *number);

/* The blocks that a value of `fence` names: those of a size, or all if `is_call`. */
struct conf_fence {
    size_t bytes_least;
    size_t bytes_most;
    bool is_call; /* FILE+0xOFFSET, the value itself */
};

/* Reads a value of `fence` that names blocks; false: it names none, or is wrong. */
bool hak_conf_parse_fence(const char *value, size_t value_bytes, struct conf_fence *fence);

/* Adds what hak_conf_parse would read as `number`: plain bytes, milliseconds, words. */
void hak_conf_add_value(struct text *text, const struct conf_row *row, int64_t number,
                        const char *string);

/* Adds a number in the largest unit that divides it: 64K, 3s, never. */
void hak_conf_add_round(struct text *text, const struct conf_row *row, int64_t number);

/* Adds what is accepted: `64K to 256M (units K, M, G, T)`. */
void hak_conf_add_range(struct text *text, const struct conf_row *row);

#endif
