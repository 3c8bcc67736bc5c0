/* SPDX-License-Identifier: MIT */
/* learn/effect_line.h - what the rules of a size class change, as a line of text in an answer.
 *
 * Owns        struct effect_line and its form:
 *
 *                 effect BLOCK_BYTES PAGES USED HELD_PAGES HELD_USED
 *
 *             with the sums of struct rule_effect in thousandths: first those of pages that were
 *             observed while rules acted, then of those while rules were held back.
 * Invariants  a line that is read is written again as the same bytes.
 * Threads     pure functions.
 * Tests       tests/unit/learn/effect_line_test.c, tests/fuzz/learned_fuzz.c
 */
#ifndef HAK_LEARN_EFFECT_LINE_H
#define HAK_LEARN_EFFECT_LINE_H

#include "base/text.h"
#include "learn/holdback.h"

/* The longest line, its end included. */
#define HAK_EFFECT_LINE_BYTES 80u

struct effect_line {
    uint32_t block_bytes;
    struct rule_effect effect;
};

/* Reads the line at the beginning of the text, up to `bytes`; returns how many it has, its end
 * included; 0: it is none. */
size_t hak_effect_line_read(struct effect_line *line, const char *text, size_t bytes);

/* Adds the line with its end. */
void hak_effect_line_write(struct text *text, const struct effect_line *line);

#endif
