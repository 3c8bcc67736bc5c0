/* SPDX-License-Identifier: MIT */
/* slab/slab.h - equal blocks, their state kept out of band.
 *
 * Owns        struct slab and its free bitmap. A block is free if its bit is set or its index is
 *             not below `bump`; "used" are all others: live, in a cache, or in transit.
 * Invariants  used == bump - (bits set). A bit at or above bump is never set. Blocks at or above
 *             max(bump, zero_from) read as zero and were never taken since. A summary bit is set
 *             exactly if its word is not 0. remote_count > 0 implies used > 0.
 * Threads     line 0 is constant while any block is live; the heap's lock guards line 1 and the
 *             free bitmap, but `link`, `purged` and `was_huge` of a slab that is out are its
 *             purger's; line 2 and the remote bitmap are shared (slab/remote.h).
 * Tests       tests/unit/slab/slab_test.c, tests/model/
 */
#ifndef HAK_SLAB_SLAB_H
#define HAK_SLAB_SLAB_H

#include "base/atomic.h"
#include "base/list.h"
#include "slab/class_use.h"
#include "slab/size_class.h"

struct slab;

/* The owner of the slabs of one heap; part of the heap, never freed. */
struct slab_owner {
    _Atomic(struct slab *) pending; /* stack of slabs with remote frees */
    _Atomic(struct slab *) purged;  /* stack of slabs that were out while pages went back */
    uint32_t heap_id;               /* from 1 on, for people and for the superslab pool */
    bool is_private;                /* the program's own: its slabs never move */
    bool is_sparse;                 /* a few blocks of many classes: heap/supply.h */
    HAK_CACHE_ALIGNED struct class_use use[HAK_ALL_CLASS_COUNT];
};

#define SLAB_UNSWEPT 0xffffu
#define SLAB_HOT 0xffu            /* blocks were taken since the last sweep */
#define SLAB_UNSETTLED UINT32_MAX /* on no list by how full it is */

/* SLAB_FULL: on a list that only private heaps keep. SLAB_OUT: with a thread that purges its pages
 * (heap/sweep.h); blocks are freed to it, and none is allocated from it. */
enum slab_place { SLAB_NOWHERE, SLAB_PARTIAL, SLAB_SPARE, SLAB_FULL, SLAB_OUT };

/*  line 0      geometry            line 1   the heap's            line 2   everybody's     
 *  then        free bitmap, padded to lines, then remote bitmap, padded to lines             */
struct slab {
    uintptr_t start;
    uint64_t reciprocal;
    uint32_t block_bytes;
    uint32_t block_count;
    uint32_t fullness_scale; /* used * fullness_scale >> 16 is the bucket */
    uint32_t generation;     /* how often this record was made a slab */
    uint8_t class_index;
    uint8_t granule_count, word_count;
    uint8_t leaf_shift;                 /* bytes of a leaf (slab/pages.h), as a power of two */
    bool is_private;                    /* as its owner says */
    uint8_t guards;                     /* which are raised: slab/shield.h */
    _Atomic(struct slab_owner *) owner; /* constant but for slabs that move to another heap */

    HAK_CACHE_ALIGNED struct list_link link; /* on one of its heap's lists of partial slabs */
    uint64_t summary[2];
    uint64_t purged; /* leaves without memory behind them: slab/pages.h */
    uint32_t used;
    uint32_t bump;
    uint32_t zero_from;
    uint32_t settled_from;   /* with fewer used it belongs to another list, or to none */
    uint16_t swept_used;     /* `used` when dead leaves were last looked for, or SLAB_UNSWEPT */
    uint8_t fullness_bucket; /* list it is on: used blocks in eighths */
    uint8_t place;           /* enum slab_place */
    bool was_huge;           /* what nobody touched may be resident (hak_pool_break_huge) */
    uint8_t heat;            /* SLAB_HOT, or the pass of sweeping that saw it cool, or 0 */
    uint16_t drawn_word;     /* that blocks are drawn from, where chance decides (slab/shield.h) */

    HAK_CACHE_ALIGNED _Atomic uint32_t remote_count;
    _Atomic(struct slab *) pending_next;

    HAK_CACHE_ALIGNED _Atomic uint64_t words[];
};

/* A record for a slab of `class_index` that starts at granule `first_granule` and belongs to
 * `owner`; the memory reads as zero when `is_zero`. Sets the owner map, not the tags. NULL: out of
 * memory. */
struct slab *hak_slab_create(uint32_t class_index, uint32_t first_granule, bool is_zero,
                             struct slab_owner *owner);

/* Gives the record of an unused slab back; false: a guard stays raised, its granules are lost. */
bool hak_slab_destroy(struct slab *slab);

/* Moves up to `count` blocks to `blocks`, lowest address first; returns how many. */
uint32_t hak_slab_take(struct slab *slab, void **blocks, uint32_t count);

/* Takes one block that reads as zero and was never handed out; NULL when there is none. */
void *hak_slab_take_zero(struct slab *slab);

/* Gives one block back. Misuse (interior, never handed out, already free) is reported and
 * aborts. */
void hak_slab_give(struct slab *slab, void *block);

HAK_INLINE void *hak_slab_block_at(const struct slab *slab, uint32_t index)
{
    return (void *)(slab->start + (size_t)index * slab->block_bytes);
}

/* Whether a block would start at the address, counted on beyond the slab's end; *index is its
 * index. */
HAK_INLINE bool hak_slab_find_start(const struct slab *slab, const void *block, uint32_t *index)
{
    size_t offset = (uintptr_t)block - slab->start;
    *index = hak_block_index(slab->reciprocal, offset);
    return (size_t)*index * slab->block_bytes == offset;
}

/* Index of the block that starts at `block`; anything else is misuse, reported as `what`. */
uint32_t hak_slab_index_of(const struct slab *slab, const void *block, const char *what);

bool hak_slab_is_sound(const struct slab *slab); /* true when every invariant above holds */

/* Records in use, all shapes. */
uint64_t hak_slab_record_count(void);

HAK_INLINE bool hak_slab_is_full(const struct slab *slab)
{
    return slab->used == slab->block_count;
}

HAK_INLINE uint32_t hak_slab_fullness_bucket(const struct slab *slab)
{
    return slab->used * slab->fullness_scale >> 16;
}

/* The remote bitmap follows the free bitmap, on lines of its own. */
HAK_INLINE uint32_t hak_slab_remote_offset(const struct slab *slab)
{
    return (slab->word_count + 7u) & ~7u;
}

HAK_INLINE _Atomic uint64_t *hak_slab_remote_words(struct slab *slab)
{
    return slab->words + hak_slab_remote_offset(slab);
}

/* Marks free the `count` blocks `bits` of a word that has none of them so far and reads `word`. */
HAK_INLINE void hak_slab_set_free(struct slab *slab, uint32_t word_index, uint64_t word,
                                  uint64_t bits, uint32_t count)
{
    hak_store_relaxed(&slab->words[word_index], word | bits);
    if (HAK_UNLIKELY(word == 0))
        slab->summary[word_index >> 6] |= 1ull << (word_index & 63);
    slab->used -= count;
}

#endif
