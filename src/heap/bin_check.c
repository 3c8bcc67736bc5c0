/* SPDX-License-Identifier: MIT */
#include "heap/bin_check.h"

#include "base/bits.h"
#include "misuse/report.h"
#include "slab/size_class.h"

#include <string.h>

/* Whether the rows of those kept lie apart from each other and from the rest: none of these blocks
 * is there twice. */
static bool lie_apart(const struct rows *rows, uint32_t kept)
{
    for (uint32_t i = 0; i < kept; i++)
        for (uint32_t j = i + 1; j < rows->count; j++)
            if (hak_rows_overlap(&rows->rows[i], &rows->rows[j]))
                return false;
    return true;
}

/* The block shares a bit with one of these: it is looked for among them. */
static HAK_NOINLINE void look_among(void *const *blocks, uint32_t count, const void *block,
                                    uint32_t block_bytes)
{
    bool is_twice = false;
    for (uint32_t i = 0; i < count; i++)
        is_twice |= blocks[i] == block;
    if (HAK_UNLIKELY(is_twice))
        hak_misuse("double free", block, block_bytes, "already free");
}

/* Fibonacci hashing, of addresses in blocks: those of neighbours come to lie apart, of however many
 * bytes they are. */
HAK_INLINE size_t bit_of(const void *block, uint64_t factor, uint32_t shift)
{
    return (uintptr_t)block * factor >> shift;
}

void hak_bin_check_once(const struct bin_checked *bin, uint32_t class_index, struct bin_seen seen)
{
    uint32_t block_bytes = hak_size_classes[class_index].block_bytes;
    void *const *blocks = bin->blocks;
    if (bin->kept == 0)
        return;
    /* 32 to 64 bits a block */
    uint32_t order = hak_bit_highest((uint32_t)hak_clamp(bin->count, 64, seen.word_count));
    uint32_t shift = 64 - order - 6;
    uint64_t factor = 0x9e3779b97f4a7c15ull / block_bytes;
    memset(seen.words, 0, sizeof *seen.words << order);
    for (uint32_t i = 0; i < bin->kept; i++) {
        size_t at = bit_of(blocks[i], factor, shift);
        uint64_t word = seen.words[at / 64];
        if (HAK_UNLIKELY((word >> (at % 64) & 1) != 0))
            look_among(blocks, i, blocks[i], block_bytes);
        seen.words[at / 64] = word | 1ull << (at % 64);
    }
    for (uint32_t i = bin->kept; i < bin->count; i++) {
        size_t at = bit_of(blocks[i], factor, shift);
        if (HAK_UNLIKELY(seen.words[at / 64] >> (at % 64) & 1))
            look_among(blocks, bin->kept, blocks[i], block_bytes);
    }
}

bool hak_bin_check_rows(const struct bin_checked *bin, uint32_t class_index, struct rows *rest)
{
    uint32_t block_bytes = hak_size_classes[class_index].block_bytes;
    struct rows rows = {.count = 0};
    if (!hak_rows_add(&rows, bin->blocks, bin->kept, block_bytes))
        return false;
    uint32_t kept = rows.count;
    if (!hak_rows_add(&rows, bin->blocks + bin->kept, bin->count - bin->kept, block_bytes) ||
        !lie_apart(&rows, kept))
        return false;
    rest->count = rows.count - kept;
    memcpy(rest->rows, rows.rows + kept, rest->count * sizeof *rest->rows);
    return true;
}

bool hak_bin_check_words(const struct bin_checked *bin, uint32_t class_index, struct words *words)
{
    if (!hak_words_suit(bin->blocks, bin->count, class_index))
        return false;
    hak_words_begin(words);
    return hak_words_add(words, bin->blocks, bin->kept, class_index, true) &&
           hak_words_add(words, bin->blocks + bin->kept, bin->count - bin->kept, class_index,
                         false);
}
