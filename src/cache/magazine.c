/* SPDX-License-Identifier: MIT */
#include "cache/magazine.h"

#include "base/check.h"
#include "region/meta.h"

#include <string.h>

static void *no_block[1];
#define NO_HEAP                                                                                    \
    {                                                                                              \
        .bins = { [0 ... HAK_CLASS_COUNT - 1] = {.top = no_block, .limit = no_block} }             \
    }
struct cache_bins hak_thread_unstarted = NO_HEAP;
struct cache_bins hak_thread_exited = NO_HEAP;
HAK_TLS struct cache_bins *hak_thread = &hak_thread_unstarted;
_Atomic uint32_t hak_active_caches;

#define ORDER_COUNT 16
static struct meta_pool array_pools[ORDER_COUNT];

static size_t array_bytes(uint32_t order)
{
    return sizeof(void *) << order;
}

static void give_array(uint32_t order, void **slots)
{
    if (slots != NULL)
        hak_meta_pool_give(&array_pools[order], slots);
}

/* Whoever counts meanwhile may look. */
static void adopt(struct magazine *magazine, struct magazine to)
{
    hak_word_publish(&magazine->slots, to.slots);
    hak_word_publish(&magazine->capacity, to.capacity);
    magazine->order = to.order;
}

/* Puts the bin on `to`, whose slots may be the old ones; false: it holds more than that may. */
static bool move(struct magazine *magazine, struct bin *bin, struct magazine to)
{
    uint32_t count = magazine->slots == NULL ? 0 : hak_magazine_close(magazine, bin);
    bool is_right = count <= to.capacity; /* else a handler has freed meanwhile */
    if (is_right) {
        to.slots[0] = NULL;
        if (count != 0 && to.slots != magazine->slots)
            memcpy(to.slots + 1, magazine->slots + 1, count * sizeof *to.slots);
        adopt(magazine, to);
    }
    hak_magazine_open(magazine, bin, count);
    return is_right;
}

bool hak_magazine_resize(struct magazine *magazine, struct bin *bin, uint32_t capacity)
{
    uint32_t order = hak_bit_highest(hak_most(capacity + 1, HAK_MAGAZINE_SLOTS_LEAST) * 2 - 1);
    hak_assert(capacity >= hak_magazine_count(magazine, bin) && order < ORDER_COUNT);
    struct magazine old = *magazine, to = *magazine;
    if (old.slots == NULL || order != old.order)
        to.slots = hak_meta_pool_take(&array_pools[order], array_bytes(order));
    if (to.slots == NULL)
        return false;
    to.order = (uint8_t)order;
    to.capacity = (uint16_t)capacity;
    bool is_right = move(magazine, bin, to);
    if (to.slots != old.slots)
        give_array(is_right ? old.order : order, is_right ? old.slots : to.slots);
    return is_right;
}

void hak_magazine_remove(struct magazine *magazine, struct bin *bin, void **sentinel)
{
    if (magazine->slots == NULL)
        return;
    uint32_t count = hak_magazine_close(magazine, bin);
    if (HAK_UNLIKELY(count != 0)) {
        hak_magazine_open(magazine, bin, count);
        return;
    }
    hak_word_publish(&bin->top, sentinel);
    hak_compiler_fence();
    bin->limit = sentinel;
    hak_compiler_fence();
    hak_meta_pool_give(&array_pools[magazine->order], magazine->slots);
    adopt(magazine, (struct magazine){.slots = NULL, .order = magazine->order});
}

uint32_t hak_magazine_take_oldest(struct magazine *magazine, struct bin *bin, void **blocks,
                                  uint32_t most)
{
    uint32_t held = hak_magazine_close(magazine, bin);
    uint32_t count = (uint32_t)hak_least(most, held);
    memcpy(blocks, magazine->slots + 1, count * sizeof *blocks);
    memmove(magazine->slots + 1, magazine->slots + 1 + count, (held - count) * sizeof *blocks);
    /* The blocks leave the bin before anybody marks them free. */
    hak_magazine_open(magazine, bin, held - count);
    return count;
}
