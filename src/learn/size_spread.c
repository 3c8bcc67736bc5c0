/* SPDX-License-Identifier: MIT */
#include "learn/size_spread.h"

#include "base/bits.h"
#include "base/limits.h"
#include "base/size_class_table.h"
#include "learn/line_reader.h"

#include <string.h>

static const uint32_t tops[] = {8,
#define X(class_index, below, block_bytes) (block_bytes),
                                HAK_SIZE_CLASSES(X)
#undef X
};
#define CLASSES (sizeof tops / sizeof *tops)
hak_static_assert(CLASSES *HAK_SIZE_CLASS_CELLS == HAK_SIZE_CELLS, "cells of all classes");

static uint32_t below(uint32_t class_index)
{
    return class_index == 0 ? 0 : tops[class_index - 1];
}

static uint32_t width(uint32_t class_index)
{
    uint32_t eighth =
        (tops[class_index] - below(class_index) + HAK_SIZE_CLASS_CELLS - 1) / HAK_SIZE_CLASS_CELLS;
    return (uint32_t)hak_align_up(eighth, HAK_ORDINARY_ALIGNMENT);
}

uint32_t hak_size_cell_of(size_t bytes)
{
    uint32_t class_index = 0;
    while (tops[class_index] < bytes)
        class_index++;
    uint32_t from_top = (tops[class_index] - (uint32_t)bytes) / width(class_index);
    return class_index * HAK_SIZE_CLASS_CELLS + HAK_SIZE_CLASS_CELLS - 1 - from_top;
}

uint32_t hak_size_cell_need(uint32_t cell)
{
    uint32_t class_index = cell / HAK_SIZE_CLASS_CELLS;
    uint32_t from_top = HAK_SIZE_CLASS_CELLS - 1 - cell % HAK_SIZE_CLASS_CELLS;
    uint32_t less = from_top * width(class_index);
    bool is_there = less < tops[class_index] - below(class_index);
    return is_there ? tops[class_index] - less : 0;
}

/* The rule of slab/size_class.c. */
uint32_t hak_size_share_bytes(uint32_t block_bytes)
{
    size_t granules = 1;
    for (; granules < HAK_SLAB_GRANULES_MAX; granules *= 2) {
        size_t slab = granules * HAK_GRANULE_BYTES;
        if (2 * (size_t)block_bytes <= slab && slab % block_bytes * 32 <= slab)
            break;
    }
    size_t slab = granules * HAK_GRANULE_BYTES;
    size_t blocks = hak_least(slab / block_bytes, HAK_SLAB_BLOCKS_MAX);
    return (uint32_t)((slab + blocks - 1) / blocks);
}

static void add_cell(struct size_cell *cell, const struct size_cell *other)
{
    cell->block_ms += other->block_ms;
    cell->slack_ms += other->slack_ms;
}

void hak_size_spread_add(struct size_spread *spread, const struct size_lines *lines)
{
    spread->watched_ms += lines->watched_ms;
    spread->samples += lines->samples;
    for (uint32_t i = 0; i < lines->count; i++)
        add_cell(&spread->cells[hak_size_cell_of(lines->lines[i].need_bytes)],
                 &lines->lines[i].cell);
}

static void halve_cell(struct size_cell *cell)
{
    cell->block_ms /= 2;
    cell->slack_ms /= 2;
    if (cell->block_ms == 0)
        cell->slack_ms = 0;
}

static bool is_bounded(const struct size_spread *spread)
{
    uint64_t most = spread->watched_ms;
    for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++)
        most = hak_most(most, hak_most(spread->cells[i].block_ms, spread->cells[i].slack_ms));
    return most <= HAK_SIZE_NUMBER_MOST;
}

void hak_size_spread_bound(struct size_spread *spread)
{
    while (!is_bounded(spread)) {
        spread->watched_ms /= 2;
        for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++)
            halve_cell(&spread->cells[i]);
    }
}

/* The next cell in use from `cell` on, in the same class; HAK_SIZE_CELLS: there is none. */
static uint32_t next_in_class(const struct size_spread *spread, uint32_t cell)
{
    for (uint32_t next = cell; next / HAK_SIZE_CLASS_CELLS == cell / HAK_SIZE_CLASS_CELLS; next++)
        if (spread->cells[next].block_ms != 0)
            return next;
    return HAK_SIZE_CELLS;
}

/* Joins the cell that changes least with the next one. */
static void join_one(struct size_spread *spread)
{
    uint32_t from = 0, to = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t cell = 0; cell + 1 < HAK_SIZE_CELLS; cell++) {
        bool is_last = cell % HAK_SIZE_CLASS_CELLS == HAK_SIZE_CLASS_CELLS - 1;
        if (is_last || spread->cells[cell].block_ms == 0)
            continue;
        uint32_t next = next_in_class(spread, cell + 1);
        if (next == HAK_SIZE_CELLS)
            continue;
        uint64_t change = spread->cells[cell].block_ms / 1024 *
                          (hak_size_cell_need(next) - hak_size_cell_need(cell));
        if (change < least)
            least = change, from = cell, to = next;
    }
    struct size_cell *cell = &spread->cells[from];
    cell->slack_ms += cell->block_ms * (hak_size_cell_need(to) - hak_size_cell_need(from));
    add_cell(&spread->cells[to], cell);
    *cell = (struct size_cell){0, 0};
}

uint32_t hak_size_spread_used(const struct size_spread *spread)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++)
        count += spread->cells[i].block_ms != 0;
    return count;
}

void hak_size_spread_cut(struct size_spread *spread, struct size_lines *lines)
{
    hak_size_spread_bound(spread);
    for (uint32_t used = hak_size_spread_used(spread); used > HAK_SIZE_LINES_MOST; used--)
        join_one(spread);
    hak_size_spread_bound(spread);
    memset(lines, 0, sizeof *lines);
    for (uint32_t i = 0; i < HAK_SIZE_CELLS; i++)
        if (spread->cells[i].block_ms != 0)
            lines->lines[lines->count++] =
                (struct size_line){hak_size_cell_need(i), spread->cells[i]};
    lines->watched_ms = lines->count == 0 ? 0 : hak_most(spread->watched_ms, 1);
    lines->samples = lines->count == 0 ? 0 : spread->samples;
}

static bool begins_with(const struct line_reader *reader, const char *word)
{
    size_t bytes = strlen(word);
    return (size_t)(reader->end - reader->at) >= bytes && memcmp(reader->at, word, bytes) == 0;
}

/* The cell must be behind the last one. */
static void read_line(struct line_reader *reader, struct size_spread *spread, uint32_t *last_need)
{
    hak_line_read_word(reader, "size ");
    uint32_t need = (uint32_t)hak_line_read_number(reader, 10, tops[CLASSES - 1]);
    hak_line_read_word(reader, " ");
    uint64_t block_ms = hak_line_read_number(reader, 10, HAK_SIZE_NUMBER_MOST);
    hak_line_read_word(reader, " ");
    uint64_t slack_ms = hak_line_read_number(reader, 10, HAK_SIZE_NUMBER_MOST);
    hak_line_read_word(reader, "\n");
    if (!reader->is_right || need <= *last_need || block_ms == 0 ||
        hak_size_cell_need(hak_size_cell_of(need)) != need) {
        reader->is_right = false;
        return;
    }
    spread->cells[hak_size_cell_of(need)] = (struct size_cell){block_ms, slack_ms};
    *last_need = need;
}

size_t hak_size_spread_read(struct size_spread *spread, const char *text, size_t bytes)
{
    struct line_reader reader = {text, text + bytes, true};
    uint32_t last_need = 0;
    memset(spread, 0, sizeof *spread);
    hak_line_read_word(&reader, "sizes ");
    spread->watched_ms = hak_line_read_number(&reader, 10, HAK_SIZE_NUMBER_MOST);
    hak_line_read_word(&reader, " ");
    spread->samples = hak_line_read_number(&reader, 10, HAK_SIZE_NUMBER_MOST);
    hak_line_read_word(&reader, "\n");
    while (reader.is_right && begins_with(&reader, "size "))
        read_line(&reader, spread, &last_need);
    if (reader.is_right && last_need != 0 && spread->watched_ms != 0)
        return (size_t)(reader.at - text);
    memset(spread, 0, sizeof *spread);
    return 0;
}

static void add_number(struct text *text, uint64_t number, const char *end)
{
    hak_text_add_number(text, hak_least(number, HAK_SIZE_NUMBER_MOST), 10);
    hak_text_add(text, end);
}

void hak_size_head_write(struct text *text, uint64_t watched_ms, uint64_t samples)
{
    hak_text_add(text, "sizes ");
    add_number(text, watched_ms, " ");
    add_number(text, samples, "\n");
}

void hak_size_line_write(struct text *text, uint32_t need_bytes, const struct size_cell *cell)
{
    hak_text_add(text, "size ");
    add_number(text, need_bytes, " ");
    add_number(text, cell->block_ms, " ");
    add_number(text, cell->slack_ms, "\n");
}

void hak_size_lines_write(struct text *text, const struct size_lines *lines)
{
    if (lines->count != 0)
        hak_size_head_write(text, lines->watched_ms, lines->samples);
    for (uint32_t i = 0; i < lines->count; i++)
        hak_size_line_write(text, lines->lines[i].need_bytes, &lines->lines[i].cell);
}

void hak_size_lines_halve(struct size_lines *lines)
{
    struct size_lines half = {.watched_ms = hak_most(lines->watched_ms / 2, 1),
                              .samples = lines->samples / 2};
    for (uint32_t i = 0; i < lines->count; i++) {
        struct size_line line = lines->lines[i];
        halve_cell(&line.cell);
        if (line.cell.block_ms != 0)
            half.lines[half.count++] = line;
    }
    if (half.count == 0)
        memset(&half, 0, sizeof half);
    *lines = half;
}
