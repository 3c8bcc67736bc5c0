/* SPDX-License-Identifier: MIT */
#include "heap/order.h"

#include "heap/supply.h"

/* A hint: its heap may be at work. */
static HAK_RACY uint32_t use_of(const void *block)
{
    const struct slab *slab = hak_slab_at(block);
    return slab == NULL ? 0 : slab->used;
}

/* By insertion: mostly they are few, and in order already. */
void hak_order_by_slab_use(void **blocks, uint32_t count)
{
    uint32_t use[HAK_ORDER_BLOCKS_MOST];
    for (uint32_t i = 0; i < count; i++) {
        void *block = blocks[i];
        uint32_t own = use_of(block), place = i;
        for (; place > 0 && use[place - 1] < own; place--) {
            use[place] = use[place - 1];
            blocks[place] = blocks[place - 1];
        }
        use[place] = own;
        blocks[place] = block;
    }
}
