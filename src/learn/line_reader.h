/* SPDX-License-Identifier: MIT */
/* learn/line_reader.h - words and numbers of a text that anybody may have written.
 *
 * Owns        struct line_reader, and the bounds of numbers that several kinds of line have.
 * Invariants  nothing at or behind `end` is read. Once something is not as it should be, is_right
 *             stays false; what is read afterwards is anything.
 * Threads     any; a reader is its caller's.
 * Tests       tests/unit/learn/learned_file_test.c, tests/unit/learn/site_line_test.c
 */
#ifndef HAK_LEARN_LINE_READER_H
#define HAK_LEARN_LINE_READER_H

#include <stdbool.h>
#include <stdint.h>

/* More than any run has; sums of two stay far from overflow. */
#define HAK_LEARNED_RUNS_MOST 1000000u
#define HAK_LEARNED_COST_MOST (UINT64_C(1) << 50)
/* No longer block has a twin for long lives. */
#define HAK_LEARNED_BLOCK_BYTES_MOST 4096u

/* What is left of a text, and whether all was right so far. */
struct line_reader {
    const char *at;
    const char *end;
    bool is_right;
};

/* The word must be next. */
void hak_line_read_word(struct line_reader *reader, const char *word);

/* The value of the digit that is next; `base` or more: there is none. */
uint32_t hak_line_digit(const struct line_reader *reader, uint32_t base);

/* A number of base 10 or 16 without leading zeros, at most `most`, must be next. */
uint64_t hak_line_read_number(struct line_reader *reader, uint32_t base, uint64_t most);

#endif
