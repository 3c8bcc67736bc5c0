/* SPDX-License-Identifier: MIT */
/* span/span_move.h - moves the contents of a span to another one by moving its pages.
 *
 * Owns        the pieces of used spans and their number in the process.
 * Invariants  the source stays mapped all the time. The target is unmapped for a moment: should
 *             another mapping land in it, the target is abandoned and the source keeps what it had
 *             (os/os_move.h). Each moved piece costs the process up to three mappings; their number
 *             stays far below the kernel's limit. Before a span with pieces becomes free, its
 *             memory is purged and its range remapped, which joins it with a neighbour again.
 *             The kernel moves one mapping at a time and refuses several. Within a piece, mappings
 *             may end where advice on huge pages does, at superslabs; such a span (is_divided)
 *             moves superslab by superslab, to where superslabs begin at the same offsets, and has
 *             more mappings. What the program has divided elsewhere stays, to be copied.
 * Threads     the spans are the caller's; the number of pieces is atomic.
 * Tests       tests/unit/span/span_move_test.c
 */
#ifndef HAK_SPAN_SPAN_MOVE_H
#define HAK_SPAN_SPAN_MOVE_H

#include "span/span.h"

enum span_move {
    SPAN_MOVED,   /* `to` holds the contents of `from`, which is empty to that extent */
    SPAN_STAYED,  /* `from` is unchanged, `to` still usable: it holds at most parts of it, and has
                   * pieces unless it is as clean as it was */
    SPAN_DAMAGED, /* `from` is unchanged, but `to` must be abandoned */
};

/* Whether the kernel may have divided the span's mappings at superslabs. */
bool hak_span_is_divided(const struct span *span);

/* Moves `from` to the same place in `to`, which is clean and without pieces: as much as both have,
 * but for the first `kept_bytes` (whole pages, less than a granule), which are left alone. */
enum span_move hak_span_move(struct span *from, struct span *to, size_t kept_bytes);

/* Remaps the span so that it is one mapping with its neighbours and reads as zero; false: the
 * kernel refused, and the span must be abandoned: its memory was returned before. */
bool hak_span_pieces_renew(struct span *span);

/* Divides the pieces of a span that is cut at `count` granules with its `tail`. */
void hak_span_pieces_cut(struct span *span, uint32_t count, struct span *tail);

/* Takes the span's pieces off the books. */
void hak_span_pieces_forget(struct span *span);

/* Pieces of all spans. */
uint32_t hak_span_piece_count(void);

#endif
