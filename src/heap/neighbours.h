/* SPDX-License-Identifier: MIT */
/* heap/neighbours.h - blocks of a bin that lie side by side.
 *
 * Owns        nothing.
 * Invariants  neighbours are one block's size apart, all upwards or all downwards. They may be of
 *             more than one slab.
 * Threads     any; the blocks are in the caller's hands.
 * Tests       tests/unit/heap/bin_check_test.c, tests/unit/heap/heap_test.c
 */
#ifndef HAK_HEAP_NEIGHBOURS_H
#define HAK_HEAP_NEIGHBOURS_H

#include "base/compiler.h"

#include <stdint.h>

/* How many of the blocks, from the first on, are neighbours; at least one, of at least one. */
HAK_INLINE uint32_t hak_neighbours(void *const *blocks, uint32_t count, uintptr_t block_bytes,
                                   bool *is_falling)
{
    uintptr_t next = (uintptr_t)blocks[0];
    *is_falling = count > 1 && (uintptr_t)blocks[1] < next;
    uintptr_t step = *is_falling ? -block_bytes : block_bytes;
    uint32_t length = 0;
    do {
        next += step;
        length++;
    } while (length < count && (uintptr_t)blocks[length] == next);
    return length;
}

#endif
