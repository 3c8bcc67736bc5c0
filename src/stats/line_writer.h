/* SPDX-License-Identifier: MIT */
/* stats/line_writer.h - writes a form line by line to a callback.
 *
 * Owns        struct line_writer: a line that is being made, and where lines go.
 * Invariants  nothing is allocated; a line is at most as long as its buffer.
 * Threads     the caller's own.
 * Tests       tests/unit/stats/emit_test.c
 */
#ifndef HAK_STATS_LINE_WRITER_H
#define HAK_STATS_LINE_WRITER_H

#include "base/bits.h"
#include "base/text.h"
#include "stats/emit.h"

#include <string.h>

#define HAK_LINE_BYTES 512
/* Lines for people are no wider. */
#define HAK_LINE_COLUMNS 79

struct line_writer {
    emit_writer *write;
    void *target;
    struct text line;
    uint64_t flush_count;
};

HAK_INLINE struct line_writer hak_line_on(char line[HAK_LINE_BYTES], emit_writer *write,
                                          void *target)
{
    struct text text = {.start = line, .bytes = HAK_LINE_BYTES};
    return (struct line_writer){.write = write, .target = target, .line = text};
}

HAK_INLINE void hak_line_add(struct line_writer *out, const char *piece)
{
    hak_text_add(&out->line, piece);
}

HAK_INLINE void hak_line_number(struct line_writer *out, uint64_t value)
{
    hak_text_add_number(&out->line, value, 10);
}

/* The same; -1 for a time that never comes. */
HAK_INLINE void hak_line_value(struct line_writer *out, uint64_t value)
{
    if (value == HAK_LINE_NEVER_MS)
        hak_line_add(out, "-1");
    else
        hak_line_number(out, value);
}

HAK_INLINE void hak_line_size(struct line_writer *out, uint64_t bytes)
{
    hak_text_add_size(&out->line, bytes);
}

/* 52.9 */
HAK_INLINE void hak_line_percent(struct line_writer *out, uint64_t part, uint64_t whole)
{
    hak_text_add_fraction(&out->line, hak_share(part, whole, 1000), 1);
}

/* Spaces up to a column of the line; and: what was added since `from` ends at a column. */
HAK_INLINE void hak_line_pad(struct line_writer *out, size_t column)
{
    hak_text_pad(&out->line, column);
}

HAK_INLINE void hak_line_right(struct line_writer *out, size_t from, size_t column)
{
    hak_text_right(&out->line, from, column);
}

/* Adds a space, at least, and a value that ends at a column. */
HAK_INLINE void hak_line_number_right(struct line_writer *out, uint64_t value, size_t column)
{
    hak_line_add(out, " ");
    size_t from = out->line.used;
    hak_line_number(out, value);
    hak_line_right(out, from, column);
}

HAK_INLINE void hak_line_size_right(struct line_writer *out, uint64_t bytes, size_t column)
{
    hak_line_add(out, " ");
    size_t from = out->line.used;
    hak_line_size(out, bytes);
    hak_line_right(out, from, column);
}

HAK_INLINE void hak_line_flush(struct line_writer *out)
{
    out->write(out->target, out->line.start, out->line.used);
    out->line.used = 0;
    out->flush_count++;
}

HAK_INLINE void hak_line_end_line(struct line_writer *out)
{
    hak_line_add(out, "\n");
    hak_line_flush(out);
}

/* Adds words up to column HAK_LINE_COLUMNS; the rest goes to further lines, from `indent` on. The
 * last line is left open. */
HAK_INLINE void hak_line_words(struct line_writer *out, const char *words, size_t indent)
{
    while (*words != '\0') {
        size_t bytes = strcspn(words, " ");
        size_t used = out->line.used;
        if (used > indent && used + 1 + bytes > HAK_LINE_COLUMNS)
            hak_line_end_line(out);
        else if (used > indent)
            hak_line_add(out, " ");
        hak_line_pad(out, indent);
        hak_text_add_bytes(&out->line, words, bytes);
        words += bytes + strspn(words + bytes, " ");
    }
}

#endif
