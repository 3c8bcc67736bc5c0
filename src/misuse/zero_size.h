/* SPDX-License-Identifier: MIT */
/* misuse/zero_size.h - blocks of size 0, which cannot be read or written.
 *
 * Owns        a range of address space without access, and a bit for each 16 bytes of it.
 * Invariants  a bit is set while its address is allocated. An address is reused only after all
 *             others were used.
 * Threads     any; the thread that changes the bit allocates or frees the block.
 * Tests       tests/unit/misuse/zero_size_test.c, tests/attack/
 */
#ifndef HAK_MISUSE_ZERO_SIZE_H
#define HAK_MISUSE_ZERO_SIZE_H

#include "base/compiler.h"

/* Reserves the range, which the first block does at the latest. */
void hak_zero_size_start(void);

/* A block; NULL: option zero_size is ordinary, there is none left, or no address space. */
void *hak_zero_size_take(void);

/* True when the address lies in the range. */
bool hak_zero_size_holds(const void *block);

/* True when it is such a block, and allocated. */
bool hak_zero_size_is_live(const void *block);

/* Gives it back; false: it is free already, or none. */
bool hak_zero_size_give(void *block);

#endif
