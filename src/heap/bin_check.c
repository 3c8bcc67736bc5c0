/* SPDX-License-Identifier: MIT */
#include "heap/bin_check.h"

#include "base/bits.h"
#include "misuse/report.h"
#include "slab/size_class.h"

#include <string.h>

/* Addresses of blocks in a row: from low to high, each as far from the one before. */
struct row {
    uintptr_t low, high;
};
#define ROWS_MOST 12u
/* So many blocks' sizes from one to the next. */
#define STEP_MOST 8u

/* How many of the blocks, from the first on, are a row; at least one, of at least one. */
static uint32_t row_length(void *const *blocks, uint32_t count, uint32_t block_bytes)
{
    uintptr_t at = (uintptr_t)blocks[0], most = (uintptr_t)STEP_MOST * block_bytes;
    uintptr_t step = count > 1 ? (uintptr_t)blocks[1] - at : 0;
    if (step == 0 || step + most > 2 * most)
        return 1;
    uint32_t length = 1;
    do {
        at += step;
        length++;
    } while (length < count && (uintptr_t)blocks[length] == at + step);
    return length;
}

/* Whether the blocks are few rows that lie apart: none is there twice. What was allocated together
 * is mostly freed so. */
static bool are_few_rows(void *const *blocks, uint32_t count, uint32_t block_bytes)
{
    struct row rows[ROWS_MOST];
    for (uint32_t n = 0; n < ROWS_MOST; n++) {
        uint32_t length = row_length(blocks, count, block_bytes);
        uintptr_t first = (uintptr_t)blocks[0], last = (uintptr_t)blocks[length - 1];
        rows[n] = first < last ? (struct row){first, last} : (struct row){last, first};
        for (uint32_t i = 0; i < n; i++)
            if (rows[i].low <= rows[n].high && rows[n].low <= rows[i].high)
                return false;
        blocks += length;
        count -= length;
        if (count == 0)
            return true;
    }
    return false;
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

void hak_bin_check_once(const struct bin_checked *bin, uint32_t class_index, struct bin_seen seen)
{
    void *const *blocks = bin->blocks;
    uint32_t block_bytes = hak_size_classes[class_index].block_bytes;
    if (bin->count == 0 || are_few_rows(blocks, bin->count, block_bytes))
        return;
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
