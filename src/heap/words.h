/* SPDX-License-Identifier: MIT */
/* heap/words.h - blocks of a bin by the words of their slabs' bitmaps: blocks allocated together
 * are mostly freed near each other.
 *
 * Owns        nothing.
 * Invariants  each word is there once, and each block's bit is set in it once: a block that comes a
 *             second time is misuse, reported. Blocks in the caller's hands are in use, so that
 *             their slabs stay what they are.
 * Threads     any; the blocks are the caller's.
 * Tests       tests/unit/heap/words_test.c, tests/unit/heap/heap_test.c
 */
#ifndef HAK_HEAP_WORDS_H
#define HAK_HEAP_WORDS_H

#include "base/bits.h"
#include "region/tag_map.h"
#include "slab/slab.h"

/* Blocks of one word of a slab's bitmap. */
struct word {
    struct slab *slab;
    uintptr_t start; /* of the word's first block */
    uint64_t kept;   /* those that go back into the bin */
    uint64_t given;  /* those that are returned */
    uint32_t bytes;  /* of all the word's blocks */
    uint32_t word_index;
};

/* Room for `most` words, a power of two; `places` has twice as many entries. */
struct words {
    struct word *words;
    uint16_t *places; /* by a hash of the start: which word, from 1 on */
    uint32_t most;
    uint32_t count;
};

/* For the stack of a signal handler. */
#define HAK_WORDS_FEW 32u
struct few_words {
    struct word words[HAK_WORDS_FEW];
    uint16_t places[2 * HAK_WORDS_FEW];
};

/* Whether there are so many blocks that a table of their words is worth it, and most lie so that
 * they can be of one word with the next one, judged by some. */
bool hak_words_suit(void *const *blocks, uint32_t count, uint32_t class_index);

/* No words yet. */
void hak_words_begin(struct words *words);

/* Adds blocks that were put into a bin of the class; false: they are of more words than there is
 * room for. */
bool hak_words_add(struct words *words, void *const *blocks, uint32_t count, uint32_t class_index,
                   bool are_kept);

/* No block of the class starts there. */
void hak_report_stray(const void *block, uint32_t class_index);

/* The slab of a block that was put into a bin of the class. It is in use for as long as nobody else
 * frees the block, too. */
HAK_INLINE struct slab *hak_slab_of_class(const void *block, uint32_t class_index)
{
    uint32_t granule = hak_granule_of(block);
    if (HAK_UNLIKELY(hak_tag_read(granule) != hak_tag_of(class_index)))
        hak_report_stray(block, class_index);
    return hak_owner_read(granule);
}

/* The same; HAK_CLASS_NONE: of any class, and known for the start of a block. */
HAK_INLINE struct slab *hak_slab_of(const void *block, uint32_t class_index)
{
    if (class_index == HAK_CLASS_NONE)
        return hak_owner_read(hak_granule_of(block));
    return hak_slab_of_class(block, class_index);
}

#endif
