/* SPDX-License-Identifier: MIT */
/* hardened/block.h - hardened blocks as they lie in slabs and spans.
 *
 * Owns        struct place: a block, its mark, and what it was cut from. A large block begins a
 *             page behind the start of its span and is followed by another, both guards when there
 *             are any left; while it waits in quarantine its pages are guards, too (MARK_SHUT).
 * Invariants  a place is found from the tag map, the slab and the mark alone: nothing that the
 *             program can write to is believed. A block that realloc resizes is FREED meanwhile, so
 *             that a concurrent free is detected, and its guard page behind is lowered; the old
 *             place of one that moved is a freed block of its own, which keeps its span.
 * Threads     hak_place_find: any; the others: the thread that took the block or freed it.
 * Tests       tests/attack/, tests/unit/hardened/hardened_test.c,
 *             tests/unit/hardened/hardened_realloc_test.c
 */
#ifndef HAK_HARDENED_BLOCK_H
#define HAK_HARDENED_BLOCK_H

#include "hardened/hardened.h"
#include "misuse/canary.h"
#include "process/slow_path.h"

struct place {
    char *block;
    size_t capacity;   /* bytes from the block to the end of what is its own */
    struct slab *slab; /* NULL: a large block */
    _Atomic uint64_t *mark;
};

/* Finds a marked block; false: it belongs to a private heap. Misuse is reported as `what`. */
bool hak_place_find(void *block, const char *what, struct place *place);

/* Stores the bytes of the live marked block that starts at `block`, in the slab or, if that is
 * NULL, in a span of its own; false: there is none. Silent. */
bool hak_hardened_block_look(char *block, struct slab *slab, size_t *bytes);

/* The minimum number of bytes of a block behind the requested ones. */
HAK_INLINE size_t hak_hardened_canary_least(void)
{
    return hak_harden_has(HARDEN_CANARY) ? HAK_CANARY_BYTES_LEAST : 0;
}

/* The size class that serves the request; HAK_CLASS_NONE: it is a large block. Blocks of at least
 * HAK_MARK_BLOCK_BYTES_LEAST are all aligned as ordinary ones. */
HAK_INLINE uint32_t hak_hardened_class_for(const struct request *request)
{
    if (HAK_UNLIKELY(request->bytes > HAK_CLASS_BYTES_MAX))
        return HAK_CLASS_NONE;
    size_t bytes =
        hak_most(request->bytes + hak_hardened_canary_least(), HAK_MARK_BLOCK_BYTES_LEAST);
    uint32_t class_index =
        HAK_LIKELY(request->alignment <= HAK_ORDINARY_ALIGNMENT && bytes <= HAK_CLASS_BYTES_MAX)
            ? hak_class_of(bytes)
            : hak_class_of_aligned(bytes, hak_most(request->alignment, HAK_ORDINARY_ALIGNMENT));
    return hak_class_in(class_index, request->partition);
}

/* A new block for the request, with everything but its mark made ready (process/serve.h):
 * hak_hardened_block_open is next. */
void *hak_hardened_block_take(struct cache *cache, const struct request *request,
                              enum hak_try turn);

/* Clears what takes memory and writes the canary; then the block is LIVE. */
void hak_hardened_block_open(void *block, const struct request *request);

/* The mark of the block is FREED: clears it, or shuts its pages. */
void hak_hardened_block_shut(const struct place *place);

/* Bytes of a live block that are the program's. */
size_t hak_hardened_block_content_bytes(const struct place *place, struct mark mark);

/* Gives a large block whose mark is FREED another size where it is, and its place another
 * capacity; then it is LIVE. False: it cannot grow there, or would leave granules behind, and all
 * is as it was. TRY_LAST: `bytes` are no more than it holds, and granules may stay behind. */
bool hak_hardened_block_resize(struct place *place, size_t bytes, enum hak_try turn);

/* A new block of `bytes` for what a large block holds whose mark is FREED: its pages are moved
 * there, or copied where the kernel refuses, and the old block is shut. hak_hardened_block_open
 * is next for the new one. NULL: all is as it was, but for its guards perhaps. */
void *hak_hardened_block_move(const struct place *place, size_t bytes);

/* Verifies a large block that was shut and gives it back to the spans. */
void hak_hardened_block_give_large(const struct place *place);

#endif
