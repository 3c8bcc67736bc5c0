/* SPDX-License-Identifier: MIT */
/* stats/pen.h - writes a form line by line to whoever takes the pieces.
 *
 * Owns        struct pen: a line that is being made, and where lines go.
 * Invariants  nothing is allocated; a line is at most as long as its buffer.
 * Threads     the caller's own.
 * Tests       tests/unit/stats/emit_test.c
 */
#ifndef HAK_STATS_PEN_H
#define HAK_STATS_PEN_H

#include "base/text.h"
#include "stats/emit.h"

#define HAK_PEN_LINE_BYTES 512

struct pen {
    emit_writer *write;
    void *target;
    struct text line;
};

HAK_INLINE void hak_pen_add(struct pen *pen, const char *piece)
{
    hak_text_add(&pen->line, piece);
}

HAK_INLINE void hak_pen_number(struct pen *pen, uint64_t value)
{
    hak_text_add_number(&pen->line, value, 10);
}

HAK_INLINE void hak_pen_flush(struct pen *pen)
{
    pen->write(pen->target, pen->line.start, pen->line.used);
    pen->line.used = 0;
}

#endif
