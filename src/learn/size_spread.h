/* SPDX-License-Identifier: MIT */
/* learn/size_spread.h - the sizes a program requests, weighted by how many such blocks it holds.
 *
 * Owns        the cells: each size class is cut into up to eight of equal width, a multiple of 16
 *             bytes; up to 2 KiB a cell is a multiple of 16. A cell has the block-milliseconds of
 *             its requests: over the time that was watched, the mean number of live blocks. And
 *             their form as text:
 *
 *                 sizes WATCHED_MS SAMPLES
 *                 size NEED_BYTES BLOCK_MS SLACK_MS
 *                 ...
 *
 *             NEED_BYTES is the smallest block that serves all requests of the cell, SLACK_MS what
 *             they were shorter than that, times how long they lived.
 * Invariants  a text that is read is written again as the same bytes: needs ascend, no cell is
 *             empty. Sums of two spreads stay far from overflow.
 * Threads     pure functions.
 * Tests       tests/unit/learn/size_spread_test.c, tests/fuzz/learned_fuzz.c
 */
#ifndef HAK_LEARN_SIZE_SPREAD_H
#define HAK_LEARN_SIZE_SPREAD_H

#include "base/text.h"

#define HAK_SIZE_CLASS_CELLS 8u
#define HAK_SIZE_CELLS (72u * HAK_SIZE_CLASS_CELLS)
/* Lines of one program, and of all, in a file: more than there are classes. */
#define HAK_SIZE_LINES_MOST 80u
/* Numbers are bounded so that a line is no longer. */
#define HAK_SIZE_LINE_BYTES 42u
#define HAK_SIZE_NUMBER_MOST UINT64_C(99999999999999)

struct size_cell {
    uint64_t block_ms;
    uint64_t slack_ms;
};

struct size_spread {
    uint64_t watched_ms;
    uint64_t samples;
    struct size_cell cells[HAK_SIZE_CELLS]; /* by need, which ascends */
};

/* A spread in few words. */
struct size_lines {
    uint64_t watched_ms;
    uint64_t samples;
    uint32_t count; /* 0: nothing is known */
    struct size_line {
        uint32_t need_bytes;
        struct size_cell cell;
    } lines[HAK_SIZE_LINES_MOST];
};

/* The cell of a request of 1 to 128 KiB. */
uint32_t hak_size_cell_of(size_t bytes);

/* The largest request of a cell. A class has fewer than eight where they would be narrower than 16
 * bytes; the need of a cell that is none is 0. */
uint32_t hak_size_cell_need(uint32_t cell);

/* What a block of so many bytes takes in a slab, with its share of what fits no block. */
uint32_t hak_size_share_bytes(uint32_t block_bytes);

/* Adds what lines say. */
void hak_size_spread_add(struct size_spread *spread, const struct size_lines *lines);

/* Cells that hold something. */
uint32_t hak_size_spread_used(const struct size_spread *spread);

/* Halves it until all numbers can be written. */
void hak_size_spread_bound(struct size_spread *spread);

/* Makes lines of it. Of more cells than there are lines, those that change least join their larger
 * neighbour of the same class: what today's classes waste stays the same number. */
void hak_size_spread_cut(struct size_spread *spread, struct size_lines *lines);

/* Reads a spread that the text begins with; returns its bytes, 0: it begins with none. */
size_t hak_size_spread_read(struct size_spread *spread, const char *text, size_t bytes);

/* Add the first line, and one of the others. */
void hak_size_head_write(struct text *text, uint64_t watched_ms, uint64_t samples);
void hak_size_line_write(struct text *text, uint32_t need_bytes, const struct size_cell *cell);
void hak_size_lines_write(struct text *text, const struct size_lines *lines);

/* Evidence counts half. */
void hak_size_lines_halve(struct size_lines *lines);

#endif
