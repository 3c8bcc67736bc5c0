/* SPDX-License-Identifier: MIT */
#include "heap/bin_check.h"

#include "base/bits.h"
#include "base/check.h"
#include "heap/neighbours.h"
#include "misuse/report.h"
#include "slab/size_class.h"

#include <string.h>

/* Addresses from low to high, the blocks' distance apart. */
struct stretch {
    uintptr_t low, high;
};
#define STRETCHES_MOST 12u

/* Whether the blocks are few stretches that lie apart: none is there twice. What was allocated
 * together is mostly freed so. */
static bool are_few_stretches(void *const *blocks, uint32_t count, uint32_t block_bytes)
{
    struct stretch stretches[STRETCHES_MOST];
    for (uint32_t n = 0; n < STRETCHES_MOST; n++) {
        bool is_falling;
        uint32_t length = hak_neighbours(blocks, count, block_bytes, &is_falling);
        uintptr_t ends[] = {(uintptr_t)blocks[0], (uintptr_t)blocks[length - 1]};
        stretches[n] = (struct stretch){ends[is_falling], ends[!is_falling]};
        for (uint32_t i = 0; i < n; i++)
            if (stretches[i].low <= stretches[n].high && stretches[n].low <= stretches[i].high)
                return false;
        blocks += length;
        count -= length;
        if (count == 0)
            return true;
    }
    return false;
}

bool hak_bin_check_once(void *const *blocks, uint32_t count, uint32_t class_index,
                        struct bin_seen seen)
{
    uint32_t block_bytes = hak_size_classes[class_index].block_bytes;
    hak_assert(2 * count <= seen.slot_count);
    if (count == 0 || are_few_stretches(blocks, count, block_bytes))
        return true;
    uint32_t shift = 64 - hak_bit_highest(seen.slot_count);
    memset(seen.slots, 0, seen.slot_count * sizeof *seen.slots);
    for (uint32_t i = 0; i < count; i++) {
        /* Fibonacci hashing: neighbours come to lie apart. */
        uint32_t at = (uint32_t)(((uintptr_t)blocks[i] >> 3) * 0x9e3779b97f4a7c15ull >> shift);
        for (; seen.slots[at] != 0; at = (at + 1) & (seen.slot_count - 1))
            if (HAK_UNLIKELY(blocks[seen.slots[at] - 1] == blocks[i]))
                hak_misuse("double free", blocks[i], block_bytes, "already free");
        seen.slots[at] = (uint16_t)(i + 1);
    }
    return false;
}
