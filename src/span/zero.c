/* SPDX-License-Identifier: MIT */
#include "span/zero.h"

#include "base/bits.h"
#include "os/os.h"
#include "region/huge_wish.h"
#include "span/big_cache.h"
#include "span/span_purge.h"

#include <string.h>

/* From here on, returning dirty memory to the kernel is cheaper than clearing it, if little of it
 * is used; 1 MiB is where clearing costs as much as 40 page faults. */
#define PURGE_RATHER_THAN_CLEAR_BYTES HAK_MIB
/* Pieces of so much of which few pages are missing are cleared, but for once in so many times: what
 * little a program uses of it by now would never show. */
#define PIECE_BYTES (2 * HAK_MIB)
#define CLEARS_PER_PURGE 128u
/* Most sparse blocks are told by so much of their start, and long ones, where another question does
 * not count, of their end. */
#define END_BYTES HAK_GRANULE_BYTES
#define LONG_BYTES (8 * HAK_MIB)
/* From here on freed sparse blocks are returned: one more question does not count. */
#define RETURNED_BYTES_LEAST (16 * HAK_MIB)

/* All of it, always: a page that is not resident may have been swapped out, with its content. */
static void purge_or_clear(char *start, size_t bytes)
{
    if (bytes != 0 && !hak_os_purge(start, bytes))
        memset(start, 0, bytes);
}

static _Atomic uint32_t clear_count;

/* A piece of which most was used will be used so again, at a page fault for each page. */
static bool is_dense(char *start, size_t bytes)
{
    return hak_os_is_resident(start, bytes);
}

static bool is_sparse(char *start, size_t bytes)
{
    if (hak_fetch_add_relaxed(&clear_count, 1) % CLEARS_PER_PURGE == CLEARS_PER_PURGE - 1)
        return true;
    return !is_dense(start, END_BYTES) &&
           (bytes < LONG_BYTES || !is_dense(start + bytes - END_BYTES, END_BYTES));
}

static void clear_pieces(char *start, size_t bytes)
{
    size_t done = 0;
    for (size_t at = 0, piece; at < bytes; at += piece) {
        piece = bytes - at < PIECE_BYTES + END_BYTES ? bytes - at : PIECE_BYTES;
        if (!is_dense(start + at, piece))
            continue;
        purge_or_clear(start + done, at - done);
        memset(start + at, 0, piece);
        done = at + piece;
    }
    purge_or_clear(start + done, bytes - done);
}

void hak_zero_make(struct span *span, size_t before, size_t bytes)
{
    char *start = hak_granule_address(span->first);
    size_t used_bytes = hak_align_up(before + bytes, hak_os_page_bytes());
    if (hak_span_bytes(span) < PURGE_RATHER_THAN_CLEAR_BYTES) {
        memset(start + before, 0, bytes);
        return;
    }
    hak_huge_refuse(hak_span_granules(span));
    if (is_sparse(start, used_bytes))
        purge_or_clear(start, used_bytes);
    else
        clear_pieces(start, used_bytes);
}

bool hak_zero_goes_back(const struct span *span)
{
    char *start = hak_granule_address(span->first);
    size_t bytes = hak_span_bytes(span);
    if (!span->began_as_zeros || bytes < RETURNED_BYTES_LEAST || hak_span_is_refilled(span) ||
        hak_big_cache_is_wished())
        return false;
    if (span->lean_count == span->count)
        bytes -= END_BYTES; /* a granule for the start alone */
    return !is_dense(start, END_BYTES) && !is_dense(start + bytes - END_BYTES, END_BYTES);
}
