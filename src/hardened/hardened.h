/* SPDX-License-Identifier: MIT */
/* hardened/hardened.h - malloc and free of the hardened mode.
 *
 * Owns        what happens to a block between the program and the bitmaps: its mark, its canary,
 *             its clearing, its guards and its time in quarantine.
 * Invariants  a block that the program holds has a LIVE mark; a block in quarantine or free does
 *             not. Blocks of private heaps have no marks: their bitmaps are exact without them.
 * Threads     any. The exchange of the mark decides between two frees. The writes of the clearing
 *             happen before the block's next use, as with any free: the quarantine belongs to a
 *             cache, and the block is flushed in the ordinary way.
 * Tests       tests/attack/, tests/unit/hardened/hardened_test.c, tests/race/hardened_race.c
 */
#ifndef HAK_HARDENED_HARDENED_H
#define HAK_HARDENED_HARDENED_H

#include "misuse/harden.h"
#include "misuse/mark.h"
#include "process/serve.h"
#include "slab/size_class.h"

#define HAK_ANY_BYTES SIZE_MAX

/* What a free says about the block. */
struct claim {
    size_t bytes; /* HAK_ANY_BYTES: nothing */
    size_t alignment;
    enum mark_kind kind;
    bool is_aligned; /* the alignment is said */
};

/* True when the mode is on already: else no block is one of it. */
HAK_INLINE bool hak_hardened_is_on(void)
{
    return HAK_UNLIKELY(hak_harden_has(HARDEN_EXACT));
}

/* True when each free and each realloc is looked at: by this mode, or to be counted. */
HAK_INLINE bool hak_is_watched(void)
{
    return HAK_UNLIKELY(hak_harden_has(HARDEN_WATCHED));
}

/* A block; NULL with ENOMEM: out of memory. */
void *hak_hardened_take(const struct request *request);

/* True when a block that is not a private heap's starts there and is live. Silent. */
bool hak_hardened_is_live(const void *block);

/* Frees it; anything but a live block that was allocated as the claim says is misuse, reported.
 * False, and nothing done: it is not for hardened mode, but a foreign pointer or a block of a
 * private heap. */
bool hak_hardened_give(void *block, const struct claim *claim);

/* As realloc and malloc_usable_size; the block is not NULL, nor `bytes` 0. *block becomes what
 * realloc returns. False, and nothing done: as above. */
bool hak_hardened_resize(void **block, size_t bytes);
bool hak_hardened_usable_bytes(void *block, size_t *bytes);

#endif
