/* SPDX-License-Identifier: MIT */
/* misuse/mark.h - hardened mode's out-of-band state of each block.
 *
 * Owns        one 64-bit word for each 32 bytes of the window, that of a block at its start. No
 *             hardened block is smaller.
 *
 *                 63       54  53        52        12  11         6  5    2  1     0
 *                 | generation | guarded | asked bytes | alignment | kind | state |
 *
 * Invariants  NONE -> LIVE -> FREED -> CLEARED -> LIVE ...; the thread that moves a mark from LIVE
 *             to FREED frees the block; a thread that fails to has freed it twice. While the bytes
 *             behind a block change, its mark is FREED; the generation grows with each allocation.
 * Threads     anyone reads. LIVE -> FREED is an exchange by the freeing thread (acq_rel); the other
 *             steps are taken by the thread that holds the block. CLEARED and LIVE are stored with
 *             release after the bytes are written, and FREED is followed by a release fence before
 *             any is: a reader that finds the same word before and after its reads
 *             (hak_mark_is_still) has seen the bytes that belong to it.
 * Tests       tests/unit/misuse/mark_test.c, tests/race/hardened_race.c
 */
#ifndef HAK_MISUSE_MARK_H
#define HAK_MISUSE_MARK_H

#include "base/atomic.h"
#include "base/bits.h"
#include "base/limits.h"
#include "region/region.h"

enum mark_state { MARK_NONE, MARK_LIVE, MARK_FREED, MARK_CLEARED };
#define HAK_MARK_STATE 3u /* its bits in the word */

/* How it was allocated; SHUT: free, its pages are guards; KEPT: realloc, its alignment is past. */
enum mark_kind { MARK_MALLOC, MARK_NEW, MARK_NEW_ARRAY, MARK_SHUT, MARK_KEPT };

struct mark {
    size_t bytes;            /* requested */
    uint32_t generation;     /* the lower bits of it */
    uint8_t state;           /* enum mark_state */
    uint8_t kind;            /* enum mark_kind */
    uint8_t alignment_shift; /* as requested; 0: ordinary */
    bool is_guarded;         /* guards stand around the block, or on it */
};

#define HAK_MARK_SHIFT 5
#define HAK_MARK_BLOCK_BYTES_LEAST ((size_t)1 << HAK_MARK_SHIFT)

/* Takes the room for marks that the region has. */
void hak_mark_start(void);

/* Makes the marks of the granules usable and NONE; false: out of memory. */
bool hak_mark_clear(size_t granule, size_t count);

/* Makes the marks of the granules usable, as they are. */
bool hak_mark_cover(size_t granule, size_t count);

extern _Atomic uint64_t *hak_marks;
/* Of the window, with usable marks; only ever larger. */
extern _Atomic size_t hak_mark_covered_bytes;

/* Gives the memory of free granules back to the kernel, and that of their marks, which are NONE
 * then; false: the kernel refused, and nothing has changed. */
bool hak_mark_purge(size_t granule, size_t count);

/* The second half of that, for granules whose memory is gone. */
void hak_mark_forget(size_t granule, size_t count);

/* What the marks of so many bytes of the window take. */
HAK_INLINE size_t hak_mark_bytes_for(size_t window_bytes)
{
    return (window_bytes >> HAK_MARK_SHIFT) * sizeof(uint64_t);
}

/* Bytes of the marks that are usable, from hak_marks on, and of all there is room for; 0 without
 * hardened mode. */
size_t hak_mark_bytes(void);
size_t hak_mark_reserved_bytes(void);

/* The mark of the block at `block`, which lies in the window; NULL: nothing there was ever
 * marked. */
HAK_INLINE _Atomic uint64_t *hak_mark_at(const void *block)
{
    size_t offset = (uintptr_t)block - hak_region.base;
    /* acquire: partner is the release in cover */
    if (HAK_UNLIKELY(offset >= hak_load_acquire(&hak_mark_covered_bytes)))
        return NULL;
    return &hak_marks[offset >> HAK_MARK_SHIFT];
}

/* The same of a block that was taken for hardened mode: the marks of all of these are usable. */
HAK_INLINE _Atomic uint64_t *hak_mark_of(const void *block)
{
    return &hak_marks[((uintptr_t)block - hak_region.base) >> HAK_MARK_SHIFT];
}

/* True when hardened mode has freed the block that starts there. */
bool hak_mark_is_freed_at(const void *block);

/* Where each member lies in the word; the state at 0. */
enum mark_layout {
    MARK_KIND_AT = 2,
    MARK_ALIGNMENT_AT = 6,
    MARK_BYTES_AT = 12,
    MARK_BYTES_BITS = 41,
    MARK_GUARDED_AT = 53,
    MARK_GENERATION_AT = 54,
};

HAK_INLINE uint64_t hak_mark_pack(struct mark mark)
{
    return (uint64_t)mark.generation << MARK_GENERATION_AT |
           (uint64_t)mark.is_guarded << MARK_GUARDED_AT | (uint64_t)mark.bytes << MARK_BYTES_AT |
           (uint64_t)mark.alignment_shift << MARK_ALIGNMENT_AT |
           (uint64_t)mark.kind << MARK_KIND_AT | mark.state;
}

HAK_INLINE struct mark hak_mark_unpack(uint64_t word)
{
    return (struct mark){
        .generation = (uint32_t)(word >> MARK_GENERATION_AT),
        .is_guarded = (word >> MARK_GUARDED_AT & 1) != 0,
        .bytes = word >> MARK_BYTES_AT & hak_bit_low_mask(MARK_BYTES_BITS),
        .alignment_shift = (uint8_t)(word >> MARK_ALIGNMENT_AT & 63),
        .kind = (uint8_t)(word >> MARK_KIND_AT & 15),
        .state = (uint8_t)(word & 3),
    };
}

/* The block and its mark are wanted soon: has them fetched from memory. Any address will do. */
HAK_INLINE void hak_mark_fetch(const void *block)
{
    __builtin_prefetch(block, 1);
    __builtin_prefetch((const void *)hak_mark_of(block), 1);
}

/* True when the mark did not change since it was `word`: bytes read since then belong to it. */
HAK_INLINE bool hak_mark_is_still(_Atomic uint64_t *mark, uint64_t word)
{
    /* acquire: orders the reads of the bytes before this one; partner is the release fence in
     * hak_mark_open */
    atomic_thread_fence(memory_order_acquire);
    return hak_load_relaxed(mark) == word;
}

/* Bytes of the block may be written from now on; the mark is FREED already. */
HAK_INLINE void hak_mark_open(void)
{
    /* release: a thread that sees one of the bytes sees the mark; partner is hak_mark_is_still */
    atomic_thread_fence(memory_order_release);
}

#endif
