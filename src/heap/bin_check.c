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

/* Fibonacci hashing: neighbours come to lie apart. */
HAK_INLINE size_t bit_of(const void *block, uint32_t shift)
{
    return ((uintptr_t)block >> 3) * 0x9e3779b97f4a7c15ull >> shift;
}

static void look_up(const struct bin_checked *bin, uint32_t block_bytes, struct bin_seen seen)
{
    void *const *blocks = bin->blocks;
    uint32_t shift = 64 - hak_bit_highest(seen.word_count) - 6;
    memset(seen.words, 0, seen.word_count * sizeof *seen.words);
    for (uint32_t i = 0; i < bin->kept; i++) {
        size_t at = bit_of(blocks[i], shift);
        uint64_t word = seen.words[at / 64], bit = 1ull << (at % 64);
        if (HAK_UNLIKELY((word & bit) != 0))
            look_among(blocks, i, blocks[i], block_bytes);
        seen.words[at / 64] = word | bit;
    }
    for (uint32_t i = bin->kept; i < bin->count; i++) {
        size_t at = bit_of(blocks[i], shift);
        if (HAK_UNLIKELY(seen.words[at / 64] >> (at % 64) & 1))
            look_among(blocks, bin->kept, blocks[i], block_bytes);
    }
}

void hak_bin_check_once(const struct bin_checked *bin, uint32_t class_index, struct bin_seen seen,
                        struct rows *rest)
{
    uint32_t block_bytes = hak_size_classes[class_index].block_bytes, kept;
    struct rows rows = {.count = 0};
    bool are_known = hak_rows_add(&rows, bin->blocks, bin->kept, block_bytes);
    kept = rows.count;
    are_known = are_known &&
                hak_rows_add(&rows, bin->blocks + bin->kept, bin->count - bin->kept, block_bytes);
    if (!are_known || !lie_apart(&rows, kept))
        look_up(bin, block_bytes, seen);
    rest->count = are_known ? rows.count - kept : 0;
    memcpy(rest->rows, rows.rows + kept, rest->count * sizeof *rest->rows);
}
