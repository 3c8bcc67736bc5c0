/* SPDX-License-Identifier: MIT */
#include "span/span_move.h"

#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"
#include "os/os_move.h"
#include "policy/policy_table.h"
#include "region/mappings.h"

#include <string.h>

/* A piece splits the mapping it is moved into and is one itself; this share of the kernel's limit
 * is left to the program, its threads and libraries. */
#define MAPPINGS_PER_PIECE 8u

/* Each divides the mapping it comes from and the one it goes to. */
#define MAPPINGS_OF_PIECE 3u

static _Atomic uint32_t piece_total;

static void count_pieces(uint32_t difference)
{
    hak_fetch_add_relaxed(&piece_total, difference);
    hak_mappings_give(-difference * MAPPINGS_OF_PIECE);
}

uint32_t hak_span_piece_count(void)
{
    return hak_load_relaxed(&piece_total);
}

void hak_span_pieces_forget(struct span *span)
{
    count_pieces(-span->piece_count);
    span->piece_count = 0;
    span->is_divided = false;
}

static uint32_t moved_end(const struct span *span)
{
    return span->piece_count == 0 ? 0 : span->piece_ends[span->piece_count - 1];
}

/* Counts the pieces that `to` will have; false when they are too many for it or the process. */
static bool admit(const struct span *from, struct span *to)
{
    uint32_t end = from->count < to->count ? from->count : to->count;
    uint32_t whole = 0; /* pieces that go as they are */
    while (whole < from->piece_count && from->piece_ends[whole] < end)
        whole++;
    uint32_t count = whole + 1;
    if (count > HAK_SPAN_PIECES_MOST)
        return false;
    uint64_t most =
        hak_least(hak_os_mappings_most() / MAPPINGS_PER_PIECE, hak_policy_read(moved_pieces_most));
    /* Counted before it is compared: threads that move together cannot pass the bound together. */
    if (!hak_mappings_take(count * MAPPINGS_OF_PIECE))
        return false;
    if (hak_fetch_add_relaxed(&piece_total, count) + count > most) {
        count_pieces(-count);
        return false;
    }
    memcpy(to->piece_ends, from->piece_ends, sizeof to->piece_ends);
    to->piece_count = count;
    to->piece_ends[count - 1] = end;
    return true;
}

bool hak_span_is_divided(const struct span *span)
{
    return span->is_divided || hak_mappings_are_divided(span->first, span->count);
}

/* The latest offset, at most `end`, at which the mapping that holds byte `done` can end. */
static size_t step_end(const struct span *from, size_t done, size_t end)
{
    uintptr_t start = (uintptr_t)hak_granule_address(from->first);
    return hak_least(end, hak_align_up(start + done + 1, HAK_SUPERSLAB_BYTES) - start);
}

/* Moves the bytes from *done to `end`; *done tells how far it came. What is several mappings, the
 * kernel refuses. */
static enum os_move move(const struct span *from, const struct span *to, size_t *done, size_t end)
{
    char *from_start = hak_granule_address(from->first), *to_start = hak_granule_address(to->first);
    enum os_move result = OS_MOVED;
    while (*done < end && result == OS_MOVED) {
        size_t next = to->is_divided ? step_end(from, *done, end) : end;
        result = hak_os_move(from_start + *done, to_start + *done, next - *done);
        if (result == OS_MOVED)
            *done = next;
    }
    return result;
}

enum span_move hak_span_move(struct span *from, struct span *to, size_t kept_bytes)
{
    hak_assert(kept_bytes < HAK_GRANULE_BYTES);
    if (!admit(from, to))
        return SPAN_STAYED;
    enum os_move result = OS_MOVED;
    size_t done = kept_bytes;
    to->is_divided = hak_span_is_divided(from);
    for (uint32_t i = 0; i < to->piece_count && result == OS_MOVED; i++)
        result = move(from, to, &done, (size_t)to->piece_ends[i] << HAK_GRANULE_SHIFT);
    if (result == OS_MOVED) {
        to->node = from->node;
        return SPAN_MOVED;
    }
    /* Copies back what was moved so far: `from` is still mapped, so copying cannot fail. */
    if (done > kept_bytes) {
        char *moved = (char *)hak_granule_address(to->first) + kept_bytes;
        memcpy((char *)hak_granule_address(from->first) + kept_bytes, moved, done - kept_bytes);
        if (result == OS_MOVE_LOST)
            hak_os_purge(moved, done - kept_bytes);
    } else if (result == OS_MOVE_UNTRIED) {
        hak_span_pieces_forget(to); /* still clean, and one mapping: it need not be renewed */
    }
    return result == OS_MOVE_LOST ? SPAN_DAMAGED : SPAN_STAYED;
}

bool hak_span_pieces_renew(struct span *span)
{
    /* Where mappings are short, the kernel may refuse to renew: then only addresses are lost. */
    hak_os_purge(hak_granule_address(span->first), hak_span_bytes(span));
    bool is_renewed = hak_region_renew(hak_span_granules(span));
    hak_span_pieces_forget(span);
    return is_renewed;
}

void hak_span_pieces_cut(struct span *span, uint32_t count, struct span *tail)
{
    uint32_t end = moved_end(span);
    uint32_t before = span->piece_count;
    uint32_t kept = 0;
    while (kept < before && span->piece_ends[kept] < count)
        kept++;
    if (kept < before)
        span->piece_ends[kept++] = count;
    span->piece_count = kept;
    tail->piece_count = end > count ? 1 : 0;
    tail->is_divided = span->is_divided && tail->piece_count != 0;
    tail->piece_ends[0] = end - count;
    count_pieces(kept + tail->piece_count - before);
}
