/* SPDX-License-Identifier: MIT */
/* learn/site_line.h - a rule of a call site as a line of text, in files and in answers.
 *
 * Owns        struct site_line and its form:
 *
 *                 site STATE BLOCK_BYTES JUDGED SURVIVORS PLACE CALLER [CALLER]
 *
 *             with the place that the allocation returns to, then where its function returns to, or
 *             `-`: any, and where that one returns to, unless it is any. A place is
 *             `MODULE+0xOFFSET@BUILD_ID`, so it stays the same wherever the module is loaded, and
 *             is no other one after a new build.
 * Invariants  a line that is read is written again as the same bytes.
 * Threads     pure functions.
 * Tests       tests/unit/learn/site_line_test.c, tests/fuzz/learned_fuzz.c
 */
#ifndef HAK_LEARN_SITE_LINE_H
#define HAK_LEARN_SITE_LINE_H

#include "base/text.h"
#include "learn/site_log.h"

#define HAK_SITE_MODULE_BYTES 40u
/* The longest line, its end included. */
#define HAK_SITE_LINE_BYTES 288u
#define HAK_SITE_COUNT_MOST 1000000000u
#define HAK_SITE_OFFSET_MOST (UINT64_C(1) << 47)

struct site_place {
    char module[HAK_SITE_MODULE_BYTES]; /* the last part of its path; "": any place */
    uint64_t offset;
    uint64_t build_id; /* its first eight bytes; 0: it has none */
};

struct site_line {
    enum rule_state state;
    uint32_t block_bytes;
    uint32_t judged;
    uint32_t survivors;
    struct site_place places[HAK_SITE_FRAMES]; /* innermost first */
};

/* Reads the line at the beginning of the text, up to `bytes`; returns how many it has, its end
 * included; 0: it is none. */
size_t hak_site_line_read(struct site_line *line, const char *text, size_t bytes);

/* Adds the line with its end. */
void hak_site_line_write(struct text *text, const struct site_line *line);

/* Reads a place alone, without BUILD_ID if it is not there; false: it is none. */
bool hak_site_place_read(struct site_place *place, const char *text);

/* Makes a module's name of its path: printable, without spaces, '+' or '@', cut. */
void hak_site_module_name(char *name, const char *path);

/* Whether it is the same site; a build id of 0 is any. */
bool hak_site_line_is_same(const struct site_line *left, const struct site_line *right);

/* Whether all its places are in modules: others, told by their address, are elsewhere in the next
 * process. */
bool hak_site_line_lasts(const struct site_line *line);

/* Whether it is a rule of the user. */
bool hak_site_line_is_said(const struct site_line *line);

/* Whether it is a site of a caller of this wrapper, or of a caller's caller. */
bool hak_site_line_is_above(const struct site_line *line, const struct site_line *wrapper);

#endif
