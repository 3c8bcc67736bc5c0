/* SPDX-License-Identifier: MIT */
/* span/span_move.h - moves the contents of a span to another one by moving its pages.
 *
 * Owns        the pieces of used spans and their number in the process.
 * Invariants  both ranges stay mapped all the time (mremap with DONTUNMAP), so that no other
 *             mapping can land in them. Each moved piece costs the process up to three mappings;
 *             their number stays far below the kernel's limit. Before a span with pieces becomes
 *             free, its range is remapped, which joins it with a neighbour again.
 * Threads     the spans are the caller's; the number of pieces is atomic.
 * Tests       tests/unit/span/span_move_test.c
 */
#ifndef HAK_SPAN_SPAN_MOVE_H
#define HAK_SPAN_SPAN_MOVE_H

#include "span/span.h"

enum span_move {
    SPAN_MOVED,   /* `to` holds what `from` held, which is empty as far as that went */
    SPAN_STAYED,  /* `from` is as it was, `to` still usable: it holds nothing but parts of that */
    SPAN_DAMAGED, /* `from` is as it was, but `to` must be lost */
};

/* Moves `from` to the same place in `to`, which is clean and without pieces: as much as both have,
 * but for the first `kept_bytes` (whole pages, less than a granule), which are left alone. */
enum span_move hak_span_move(struct span *from, struct span *to, size_t kept_bytes);

/* Maps the span anew so that it is one with its neighbours and reads as zero; false: the kernel
 * refused, and the span must be lost. */
bool hak_span_pieces_renew(struct span *span);

/* Divides the pieces of a span that is cut at `count` granules with its `tail`. */
void hak_span_pieces_cut(struct span *span, uint32_t count, struct span *tail);

/* Takes the span's pieces off the books. */
void hak_span_pieces_forget(struct span *span);

/* Pieces of all spans. */
uint32_t hak_span_piece_count(void);

#endif
