/* SPDX-License-Identifier: MIT */
/* misuse/canary.h - bytes around a block that reveal writes beyond its bounds.
 *
 * Owns        the bytes between the requested size and the end of the block: a canary of at most
 *             HAK_CANARY_BYTES_MOST, and zeros when cleared blocks are verified.
 * Invariants  as in misuse/mark.h: the bytes are written while the block's mark is FREED.
 * Threads     a block's owner writes and verifies it; its right neighbour's owner verifies its end
 *             while others may use it, and accepts the result only if the mark did not change.
 * Tests       tests/unit/misuse/canary_test.c, tests/race/hardened_race.c
 */
#ifndef HAK_MISUSE_CANARY_H
#define HAK_MISUSE_CANARY_H

#include "base/bits.h"
#include "base/check.h"
#include "misuse/harden.h"

#include <string.h>

#define HAK_CANARY_BYTES_LEAST 8u
#define HAK_CANARY_BYTES_MOST 32u
/* So much of the end of its left neighbour is looked at when a block is freed. Less if that was
 * freed: what was written farther from the end was rather written to that block, which is found
 * when it leaves the quarantine. */
#define HAK_SEAL_LOOK_BYTES 32u
#define HAK_SEAL_LOOK_FREED_BYTES 16u

#define HAK_CANARY_WORD_BYTES sizeof(uint64_t)

/* The canary is the same 8 bytes over and over: a word of it that begins at byte `at`. */
HAK_INLINE uint64_t hak_canary_word(uint64_t canary, size_t at)
{
    size_t shift = at % HAK_CANARY_WORD_BYTES * 8;
    return canary >> shift | canary << (64 - shift) % 64;
}

/* Where the last word of the canary begins, behind the `bytes` of a block of `capacity`. */
HAK_INLINE size_t hak_canary_last(size_t bytes, size_t capacity)
{
    hak_assert(capacity - bytes >= HAK_CANARY_BYTES_LEAST);
    return hak_least(capacity - bytes, HAK_CANARY_BYTES_MOST) - HAK_CANARY_WORD_BYTES;
}

/* Writes the canary behind `bytes` of a block of `capacity`. */
HAK_INLINE void hak_canary_write(char *block, size_t bytes, size_t capacity)
{
    uint64_t canary = hak_canary_of(block);
    size_t last = hak_canary_last(bytes, capacity);
    for (size_t at = 0; at < last; at += HAK_CANARY_WORD_BYTES)
        memcpy(block + bytes + at, &canary, HAK_CANARY_WORD_BYTES);
    uint64_t word = hak_canary_word(canary, last);
    memcpy(block + bytes + last, &word, HAK_CANARY_WORD_BYTES);
}

/* True when the canary is as it was written. */
HAK_INLINE bool hak_canary_is_whole(const char *block, size_t bytes, size_t capacity)
{
    uint64_t canary = hak_canary_of(block), found;
    size_t last = hak_canary_last(bytes, capacity);
    memcpy(&found, block + bytes + last, HAK_CANARY_WORD_BYTES);
    uint64_t wrong = found ^ hak_canary_word(canary, last);
    for (size_t at = 0; at < last; at += HAK_CANARY_WORD_BYTES) {
        memcpy(&found, block + bytes + at, HAK_CANARY_WORD_BYTES);
        wrong |= found ^ canary;
    }
    return wrong == 0;
}

/* What is known of the bytes of blocks that were never handed out. */
enum canary_fresh { CANARY_FRESH_UNKNOWN, CANARY_FRESH_ZERO };

/* True when the end of a neighbour is as its mark requires, or it cannot be determined. */
bool hak_canary_end_is_whole(const char *block, size_t capacity, enum canary_fresh fresh);

/* True when the canary of a block that others may be using is as its mark requires, or it cannot be
 * determined. */
bool hak_canary_is_whole_now(const char *block, size_t capacity);

/* True when all bytes are 0. */
bool hak_canary_is_zero(const char *start, size_t bytes);

#endif
