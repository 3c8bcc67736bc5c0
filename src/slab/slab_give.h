/* SPDX-License-Identifier: MIT */
/* slab/slab_give.h - returns blocks of one word of a bitmap together.
 *
 * Owns        nothing.
 * Invariants  as slab/slab.h says; misuse is detected before anything is changed.
 * Threads     the holder of the lock of the slab's heap.
 * Tests       tests/unit/slab/slab_test.c, tests/unit/slab/remote_test.c
 */
#ifndef HAK_SLAB_SLAB_GIVE_H
#define HAK_SLAB_SLAB_GIVE_H

#include "slab/slab.h"

/* Reports misuse of the lowest of these blocks of one word of the bitmap. */
_Noreturn void hak_slab_report(const struct slab *slab, uint32_t word_index, uint64_t bits,
                               const char *what, const char *state);

/* Reports misuse (never handed out, already free) of the blocks `bits` of word `word_index`, at
 * least one. */
void hak_slab_check_word(const struct slab *slab, uint32_t word_index, uint64_t bits);

/* Gives back the blocks `bits` of word `word_index`, `count` of them; misuse is reported and
 * aborts. */
HAK_INLINE void hak_slab_give_word(struct slab *slab, uint32_t word_index, uint64_t bits,
                                   uint32_t count)
{
    uint64_t word = hak_load_relaxed(&slab->words[word_index]);
    if (HAK_UNLIKELY((word & bits) != 0 || word_index * 64 + 64 > slab->bump))
        hak_slab_check_word(slab, word_index, bits);
    hak_slab_set_free(slab, word_index, word, bits, count);
}

/* Gives back the block at `index`, which may lie behind the last; as above. */
HAK_INLINE void hak_slab_give_index(struct slab *slab, uint32_t index)
{
    uint64_t word = hak_load_relaxed(&slab->words[index / 64]);
    if (HAK_UNLIKELY((word >> (index % 64) & 1) != 0 || index >= slab->bump))
        hak_slab_check_word(slab, index / 64, 1ull << (index % 64));
    hak_slab_set_free(slab, index / 64, word, 1ull << (index % 64), 1);
}

#endif
