/* SPDX-License-Identifier: MIT */
/* conf/conf_text.h - settings in a text, one after the other.
 *
 * Owns        the two forms: lines `name = value` with # comments, and `name=value,name=value`. In
 *             both ':' is as good as '=', and white space around names and values is nothing.
 * Invariants  nothing outside the text is read, nothing is written but the pair; any bytes will do.
 * Threads     pure functions.
 * Tests       tests/unit/conf/conf_text_test.c
 */
#ifndef HAK_CONF_CONF_TEXT_H
#define HAK_CONF_CONF_TEXT_H

#include "base/compiler.h"

/* What is left of a text; `line` is that of the last pair, from 1. */
struct conf_text {
    const char *at;
    const char *end;
    uint32_t line;
};

/* One setting, as it stands in the text. */
struct conf_pair {
    const char *name;
    size_t name_bytes;
    const char *value; /* NULL: it has none */
    size_t value_bytes;
    uint32_t line; /* 0: the text has no lines */
};

/* One setting, all of [start, end); false: there is none. `line` stays as it is. */
bool hak_conf_split(const char *start, const char *end, struct conf_pair *pair);

/* The next setting of a file; false: there is none. */
bool hak_conf_next_line(struct conf_text *text, struct conf_pair *pair);

/* The next setting of the packed form; false: there is none. */
bool hak_conf_next_packed(struct conf_text *text, struct conf_pair *pair);

#endif
