/* SPDX-License-Identifier: MIT */
/* learn/keep_line.h - what a log of keep times has seen, as a line of text.
 *
 * Owns        the form of the line, in which LOG is the caller's word:
 *
 *                 LOG CHOICE EPISODES DECAY_MS FAULT_MS COST...
 *
 * Invariants  a line that is read is written again as the same bytes.
 * Threads     pure functions.
 * Tests       tests/unit/learn/learned_file_test.c, tests/fuzz/learned_fuzz.c
 */
#ifndef HAK_LEARN_KEEP_LINE_H
#define HAK_LEARN_KEEP_LINE_H

#include "base/text.h"
#include "learn/keep_time.h"
#include "learn/line_reader.h"

/* The longest line: a word, a digit, 7 of them, and 11 times 16. */
#define HAK_KEEP_LINE_BYTES (10u + 2u + 8u + 11u * 17u)

/* The line of the log must be next. */
void hak_keep_line_read(struct line_reader *reader, const char *word, struct keep_evidence *log);
void hak_keep_line_write(struct text *text, const char *word, const struct keep_evidence *log);

#endif
