/* SPDX-License-Identifier: MIT */
/* stats/line_writer.h - writes a form line by line to whoever takes the pieces.
 *
 * Owns        struct line_writer: a line that is being made, and where lines go.
 * Invariants  nothing is allocated; a line is at most as long as its buffer.
 * Threads     the caller's own.
 * Tests       tests/unit/stats/emit_test.c
 */
#ifndef HAK_STATS_LINE_WRITER_H
#define HAK_STATS_LINE_WRITER_H

#include "base/text.h"
#include "stats/emit.h"

#define HAK_LINE_BYTES 512

struct line_writer {
    emit_writer *write;
    void *target;
    struct text line;
};

HAK_INLINE void hak_line_add(struct line_writer *out, const char *piece)
{
    hak_text_add(&out->line, piece);
}

HAK_INLINE void hak_line_number(struct line_writer *out, uint64_t value)
{
    hak_text_add_number(&out->line, value, 10);
}

HAK_INLINE void hak_line_flush(struct line_writer *out)
{
    out->write(out->target, out->line.start, out->line.used);
    out->line.used = 0;
}

#endif
