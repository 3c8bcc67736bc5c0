/* SPDX-License-Identifier: MIT */
#include "heap/bin_check.h"

#include "base/bits.h"
#include "misuse/report.h"
#include "slab/size_class.h"

#include <string.h>

/* Two blocks may share a bit: then all of them are compared. */
static HAK_NOINLINE void look_closely(void *const *blocks, uint32_t at, uint32_t class_index)
{
    for (uint32_t i = 0; i < at; i++)
        if (HAK_UNLIKELY(blocks[i] == blocks[at]))
            hak_misuse("double free", blocks[at], hak_size_classes[class_index].block_bytes,
                       "already free");
}

void hak_bin_check_once(void *const *blocks, uint32_t count, uint32_t class_index,
                        struct bin_filter filter)
{
    uint32_t shift = 64 - hak_bit_highest(filter.word_count * 64ull);
    memset(filter.words, 0, filter.word_count * sizeof *filter.words);
    for (uint32_t i = 0; i < count; i++) {
        /* Fibonacci hashing: neighbours come to lie apart. */
        uint64_t hash = ((uintptr_t)blocks[i] >> 3) * 0x9e3779b97f4a7c15ull >> shift;
        uint64_t bit = 1ull << (hash & 63), *word = &filter.words[hash >> 6];
        if (HAK_UNLIKELY(*word & bit))
            look_closely(blocks, i, class_index);
        *word |= bit;
    }
}
