/* SPDX-License-Identifier: MIT */
/* misuse/zero_size.h - blocks of no bytes, which nobody can read or write.
 *
 * Owns        a range of address space without access, and a bit for each 16 bytes of it.
 * Invariants  a bit is set while its address is allocated. Addresses are used again after all
 *             others were.
 * Threads     any; whoever changes the bit gives or takes the block.
 * Tests       tests/unit/misuse/zero_size_test.c, tests/attack/
 */
#ifndef HAK_MISUSE_ZERO_SIZE_H
#define HAK_MISUSE_ZERO_SIZE_H

#include "base/compiler.h"

/* Reserves the range; without it there are no such blocks. */
void hak_zero_size_start(void);

/* A block; NULL: there is none left. */
void *hak_zero_size_take(void);

/* True when the address lies in the range. */
bool hak_zero_size_holds(const void *block);

/* True when the block is allocated. */
bool hak_zero_size_is_live(const void *block);

/* Gives it back; false: it is free already, or none. */
bool hak_zero_size_give(void *block);

#endif
