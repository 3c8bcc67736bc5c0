/* SPDX-License-Identifier: MIT */
#include "heap/order.h"

#include "heap/supply.h"

/* A hint: its heap may be at work. */
static HAK_RACY uint32_t use_of(const void *block)
{
    const struct slab *slab = hak_slab_at(block);
    return slab == NULL ? 0 : slab->used;
}

void hak_order_by_slab_use(void **blocks, uint32_t count)
{
    uint32_t use[HAK_ORDER_BLOCKS_MOST];
    for (uint32_t i = 0; i < count; i++) {
        void *block = blocks[i];
        uint32_t key = use_of(block);
        uint32_t at = i;
        for (; at > 0 && use[at - 1] > key; at--) {
            use[at] = use[at - 1];
            blocks[at] = blocks[at - 1];
        }
        use[at] = key;
        blocks[at] = block;
    }
}

void hak_order_reverse(void **blocks, uint32_t count)
{
    for (uint32_t i = 0, j = count; i + 1 < j; i++) {
        j--;
        void *block = blocks[i];
        blocks[i] = blocks[j];
        blocks[j] = block;
    }
}
