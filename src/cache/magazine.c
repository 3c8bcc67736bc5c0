/* SPDX-License-Identifier: MIT */
#include "cache/magazine.h"

#include "base/check.h"
#include "region/meta.h"

#include <string.h>

#define ORDER_COUNT 16
static struct meta_pool array_pools[ORDER_COUNT];

static size_t array_bytes(uint32_t order)
{
    return sizeof(void *) << order;
}

bool hak_magazine_resize(struct magazine *magazine, struct bin *bin, uint32_t capacity)
{
    uint32_t count = hak_magazine_count(magazine, bin);
    uint32_t order = hak_bit_highest(hak_most(capacity + 1, HAK_MAGAZINE_SLOTS_LEAST) * 2 - 1);
    hak_assert(capacity >= count && order < ORDER_COUNT);
    if (magazine->slots == NULL || order != magazine->order) {
        void **slots = hak_meta_pool_take(&array_pools[order], array_bytes(order));
        if (slots == NULL)
            return false;
        slots[0] = NULL;
        if (magazine->slots != NULL) {
            memcpy(slots + 1, magazine->slots + 1, count * sizeof *slots);
            hak_meta_pool_give(&array_pools[magazine->order], magazine->slots);
        }
        magazine->slots = slots;
        magazine->order = (uint8_t)order;
        bin->top = slots + count;
    }
    magazine->capacity = (uint16_t)capacity;
    bin->limit = magazine->slots + capacity;
    return true;
}

void hak_magazine_remove(struct magazine *magazine, struct bin *bin, void **sentinel)
{
    if (magazine->slots == NULL)
        return;
    hak_assert(hak_magazine_count(magazine, bin) == 0);
    bin->top = sentinel;
    bin->limit = sentinel;
    hak_meta_pool_give(&array_pools[magazine->order], magazine->slots);
    magazine->slots = NULL;
    magazine->capacity = 0;
}

void hak_magazine_take_oldest(struct magazine *magazine, struct bin *bin, void **blocks,
                              uint32_t count)
{
    uint32_t held = hak_magazine_count(magazine, bin);
    hak_assert(count <= held);
    memcpy(blocks, magazine->slots + 1, count * sizeof *blocks);
    memmove(magazine->slots + 1, magazine->slots + 1 + count, (held - count) * sizeof *blocks);
    /* The blocks leave the bin before anybody marks them free. */
    hak_compiler_fence();
    bin->top -= count;
}
