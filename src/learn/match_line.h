/* SPDX-License-Identifier: MIT */
/* learn/match_line.h - what is known of a value from matches of earlier runs: a line of the file
 * that option `profile` names.
 *
 * Owns        the form of the line:
 *
 *                 match ROW VALUE RATING MATCHES WON LOST GAIN HARM
 *
 *             RATING in points, GAIN and HARM in thousandths of what gamblers started with.
 * Invariants  a line that is read is written again as the same bytes; rows and values are those of
 *             learn/match_board.h. Evidence that is halved is a square root: what gamblers keep of
 *             a gain, never more than they had.
 * Threads     pure functions.
 * Tests       tests/unit/learn/match_line_test.c, tests/fuzz/learned_fuzz.c
 */
#ifndef HAK_LEARN_MATCH_LINE_H
#define HAK_LEARN_MATCH_LINE_H

#include "base/text.h"
#include "learn/match_board.h"

/* Numbers are bounded so that a line is no longer. */
#define HAK_MATCH_LINE_BYTES 80u
#define HAK_MATCH_COUNT_MOST 9999u
#define HAK_MATCH_EVIDENCE_MOST 9999999u
/* All values but the usual ones. */
#define HAK_MATCH_LINES_MOST 8u

struct match_line {
    uint32_t knob, arm;
    uint32_t rating; /* points */
    uint32_t matches, won, lost;
    uint32_t gain, harm; /* thousandths */
};

/* HAK_KNOB_TABLE as data. */
struct match_knob {
    const char *name, *what;
    uint32_t count;
    uint64_t values[HAK_ARMS_MOST]; /* `count` of them; the first is the usual one */
};
extern const struct match_knob hak_match_knobs[KNOB_COUNT];

/* Reads a line that text begins with; returns its bytes, 0: it begins with none. */
size_t hak_match_line_read(struct match_line *line, const char *text, size_t bytes);
void hak_match_line_write(struct text *text, const struct match_line *line);

/* Evidence counts half; false: nothing is left of it. */
bool hak_match_line_halve(struct match_line *line);

/* Adds what other runs saw of the same value. */
void hak_match_line_add(struct match_line *line, const struct match_line *other);

/* What is known of a value, and to begin with it. */
void hak_match_line_from(struct match_line *line, const struct arm *arm);
void hak_match_line_to(const struct match_line *line, struct arm *arm);

#endif
