/* SPDX-License-Identifier: MIT */
#include "heap/bin_check.h"

#include "base/bits.h"
#include "base/check.h"
#include "misuse/report.h"
#include "slab/size_class.h"

#include <string.h>

void hak_bin_check_once(void *const *blocks, uint32_t count, uint32_t class_index,
                        struct bin_seen seen)
{
    uint32_t shift = 64 - hak_bit_highest(seen.slot_count);
    hak_assert(2 * count <= seen.slot_count);
    memset(seen.slots, 0, seen.slot_count * sizeof *seen.slots);
    for (uint32_t i = 0; i < count; i++) {
        /* Fibonacci hashing: neighbours come to lie apart. */
        uint32_t at = (uint32_t)(((uintptr_t)blocks[i] >> 3) * 0x9e3779b97f4a7c15ull >> shift);
        for (; seen.slots[at] != 0; at = (at + 1) & (seen.slot_count - 1))
            if (HAK_UNLIKELY(blocks[seen.slots[at] - 1] == blocks[i]))
                hak_misuse("double free", blocks[i], hak_size_classes[class_index].block_bytes,
                           "already free");
        seen.slots[at] = (uint16_t)(i + 1);
    }
}
