/* SPDX-License-Identifier: MIT */
#include "heap/order.h"

#include "heap/supply.h"

/* Slabs of more blocks in use count as equally full. */
#define USE_MOST 31u

/* A hint: its heap may be at work. */
static HAK_RACY uint32_t use_of(const void *block)
{
    const struct slab *slab = hak_slab_at(block);
    return slab == NULL ? 0 : slab->used;
}

void hak_order_by_slab_use(void **blocks, uint32_t count)
{
    void *before[HAK_ORDER_BLOCKS_MOST];
    uint8_t use[HAK_ORDER_BLOCKS_MOST], places[USE_MOST + 1] = {0};
    for (uint32_t i = 0; i < count; i++) {
        before[i] = blocks[i];
        use[i] = (uint8_t)hak_least(use_of(blocks[i]), USE_MOST);
        places[use[i]]++;
    }
    uint8_t place = 0; /* of the first block of a slab that is so full */
    for (uint32_t i = USE_MOST + 1; i-- > 0;) {
        uint8_t n = places[i];
        places[i] = place;
        place = (uint8_t)(place + n);
    }
    for (uint32_t i = 0; i < count; i++)
        blocks[places[use[i]]++] = before[i];
}
