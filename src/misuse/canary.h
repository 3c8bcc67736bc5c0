/* SPDX-License-Identifier: MIT */
/* misuse/canary.h - the bytes around a block that say whether somebody wrote there.
 *
 * Owns        what lies between the bytes that a program asked for and the end of the block: a
 *             canary of at most HAK_CANARY_BYTES_MOST, and zeros when cleared blocks are verified.
 * Invariants  as in misuse/mark.h: the bytes are written while the block's mark is FREED.
 * Threads     a block's owner writes and verifies it; its right neighbour's owner verifies its end
 *             while others may use it, and believes what it saw only if the mark stayed the same.
 * Tests       tests/unit/misuse/canary_test.c, tests/race/hardened_race.c
 */
#ifndef HAK_MISUSE_CANARY_H
#define HAK_MISUSE_CANARY_H

#include "base/compiler.h"

#define HAK_CANARY_BYTES_LEAST 8u
#define HAK_CANARY_BYTES_MOST 32u
/* So much of the end of its left neighbour is looked at when a block is freed. */
#define HAK_SEAL_LOOK_BYTES 16u

/* Writes the canary behind `bytes` of a block of `capacity`. */
void hak_canary_write(char *block, size_t bytes, size_t capacity);

/* True when the canary is as it was written. */
bool hak_canary_is_whole(const char *block, size_t bytes, size_t capacity);

/* What is known of the bytes of blocks that were never handed out. */
enum canary_fresh { CANARY_FRESH_UNKNOWN, CANARY_FRESH_ZERO };

/* True when the end of a neighbour is what its mark says it must be, or nobody can tell. */
bool hak_canary_end_is_whole(const char *block, size_t capacity, enum canary_fresh fresh);

/* True when all bytes are 0. */
bool hak_canary_is_zero(const char *start, size_t bytes);

#endif
