/* SPDX-License-Identifier: MIT */
/* heap/rows.h - blocks of a bin that lie in rows: blocks allocated together are mostly freed
 * together.
 *
 * Owns        nothing.
 * Invariants  a row's blocks are each as far from the one before, upwards or downwards, by no more
 *             than a few blocks' sizes; so none is there twice. They may be of more than one slab.
 * Threads     any; the blocks are the caller's.
 * Tests       tests/unit/heap/bin_check_test.c, tests/unit/heap/heap_test.c
 */
#ifndef HAK_HEAP_ROWS_H
#define HAK_HEAP_ROWS_H

#include "base/bits.h"

#include <stdint.h>

/* A row's blocks are so many blocks' sizes apart at most. */
#define HAK_ROW_STEP_MOST 8u
#define HAK_ROWS_MOST 16u

struct row {
    uintptr_t first; /* block of these */
    uintptr_t step;  /* to the next one; wraps around where they fall; 0: there is none */
    uint32_t length;
};

/* Of some blocks: none, if they lie in more rows than are worth to be known. */
struct rows {
    uint32_t count;
    struct row rows[HAK_ROWS_MOST];
};

/* Adds the rows of these blocks; false, and no rows at all: there are too many. */
HAK_INLINE bool hak_rows_add(struct rows *rows, void *const *blocks, uint32_t count,
                             uint32_t block_bytes)
{
    uintptr_t most = (uintptr_t)HAK_ROW_STEP_MOST * block_bytes;
    for (uint32_t length; count > 0; blocks += length, count -= length) {
        uintptr_t at = (uintptr_t)blocks[0];
        uintptr_t step = count > 1 ? (uintptr_t)blocks[1] - at : 0;
        if (step + most > 2 * most)
            step = 0;
        length = 1;
        while (step != 0 && length < count && (uintptr_t)blocks[length] == at + step) {
            at += step;
            length++;
        }
        if (rows->count == HAK_ROWS_MOST) {
            rows->count = 0;
            return false;
        }
        rows->rows[rows->count++] = (struct row){(uintptr_t)blocks[0], step, length};
    }
    return true;
}

/* Whether the rows' addresses overlap: a block may be in both. */
HAK_INLINE bool hak_rows_overlap(const struct row *a, const struct row *b)
{
    uintptr_t a_last = a->first + (a->length - 1) * a->step;
    uintptr_t b_last = b->first + (b->length - 1) * b->step;
    return hak_least(a->first, a_last) <= hak_most(b->first, b_last) &&
           hak_least(b->first, b_last) <= hak_most(a->first, a_last);
}

#endif
