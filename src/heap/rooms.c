/* SPDX-License-Identifier: MIT */
#include "heap/rooms.h"

#include "base/bits.h"
#include "base/check.h"
#include "misuse/harden.h"
#include "region/meta.h"

#include <string.h>

/* Words of a slot's bins at first, and of a processor's: as orders. */
#define ORDER_FIRST 9u
#define ORDER_MOST 15u
hak_static_assert(HAK_FIRST_SLOT < 1u << ORDER_FIRST, "bins and a few slots");
hak_static_assert(ORDER_MOST < 16, "a word's index has 16 bits");

/* Processors' have a pool of their own: a thread that was slow to look whose its bins are finds
 * another processor's cache, never a thread's. */
static struct meta_pool slot_pools[ORDER_MOST + 1];
static struct meta_pool processor_pool;

_Atomic uint32_t hak_active_caches;
struct hak_lock hak_caches_lock_word = HAK_LOCK_START_WITH(HAK_LOCK_CACHES);

bool hak_rooms_try_lock(void)
{
    return !hak_lock_is_inside() && hak_lock_try(&hak_caches_lock_word);
}

void hak_rooms_unlock(void)
{
    hak_lock_give(&hak_caches_lock_word);
}

/* Word by word: somebody may still count what was there before. */
static void copy_headers(struct bins *to, const struct bins *from)
{
    const uint64_t *words = (const uint64_t *)(const void *)from;
    for (size_t i = 0; i < sizeof to->bins / sizeof *words; i++)
        hak_word_publish((uint64_t *)(void *)to + i, words[i]);
}

static struct bins *create(struct meta_pool *pool, uint32_t order)
{
    struct bins *bins = hak_meta_pool_take(pool, sizeof(void *) << order);
    if (bins != NULL)
        copy_headers(bins, &hak_bins_closed);
    return bins;
}

static uint32_t order_of(bool is_processors)
{
    return is_processors ? ORDER_MOST : ORDER_FIRST;
}

size_t hak_rooms_bytes(bool is_processors)
{
    return sizeof(void *) << order_of(is_processors);
}

struct bins *hak_rooms_create(uint32_t *word_count, bool is_processors)
{
    uint32_t order = order_of(is_processors);
    *word_count = 1u << order;
    return create(is_processors ? &processor_pool : &slot_pools[order], order);
}

void hak_rooms_destroy(struct bins *bins, uint32_t word_count, bool is_processors)
{
    uint32_t order = hak_bit_highest(word_count);
    hak_meta_pool_give(is_processors ? &processor_pool : &slot_pools[order], bins);
}

/* release: partner is the acquire of a count (heap/cache.h) */
static void publish(struct cache *cache, struct bins *bins)
{
    __atomic_store_n(&cache->bins, bins, __ATOMIC_RELEASE);
}

void hak_rooms_start(struct cache *cache, struct bins *bins, uint32_t word_count)
{
    hak_word_publish(&bins->cache, cache); /* a pop may still have to be noted: never NULL again */
    cache->word_count = word_count;
    cache->used_words = HAK_FIRST_SLOT;
    hak_word_publish(&cache->capacity_bytes, (size_t)0);
    memset(cache->free_rooms, 0, sizeof cache->free_rooms);
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        hak_word_publish(&cache->rooms[i].bottom, (uint16_t)0);
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        hak_store_relaxed(&cache->drawn[i], DRAW_NONE);
    publish(cache, bins);
}

void hak_rooms_show(const struct cache *cache)
{
    bool is_watched = hak_harden_has(HARDEN_WATCHED);
    /* release: partner is the load of a pop; it depends on the address */
    __atomic_store_n(&hak_bins_of[cache->id],
                     is_watched ? (struct bins *)&hak_bins_closed : cache->bins, __ATOMIC_RELEASE);
}

static void **words_of(struct cache *cache)
{
    return (void **)(void *)cache->bins;
}

/* Moves a slot's bins to more memory. Nobody finds them meanwhile. */
static bool extend(struct cache *cache)
{
    uint32_t order = hak_bit_highest(cache->word_count);
    struct bins *old = cache->bins;
    struct bins *bins = NULL;
    if (order < ORDER_MOST && !hak_cache_is_processors(cache))
        bins = create(&slot_pools[order + 1], order + 1);
    if (bins == NULL)
        return false;
    hak_word_publish(&hak_bins_of[cache->id], (struct bins *)&hak_bins_closed);
    hak_compiler_fence();
    copy_headers(bins, old);
    bins->cache = cache;
    memcpy(bins->slots, old->slots, (cache->used_words - HAK_FIRST_SLOT) * sizeof(void *));
    publish(cache, bins);
    cache->word_count = 2u << order;
    hak_compiler_fence();
    hak_rooms_show(cache);
    hak_compiler_fence();
    hak_rooms_destroy(old, 1u << order, false);
    return true;
}

/* The last word of a room; 0: there is none. */
static uint32_t take(struct cache *cache, uint32_t order)
{
    uint32_t bottom = cache->free_rooms[order];
    if (bottom != 0) {
        cache->free_rooms[order] = (uint16_t)(uintptr_t)words_of(cache)[bottom];
        return bottom;
    }
    while (cache->used_words + (1u << order) > cache->word_count)
        if (!extend(cache))
            return 0;
    cache->used_words += 1u << order;
    return cache->used_words - 1;
}

static void give(struct cache *cache, uint32_t bottom, uint32_t order)
{
    words_of(cache)[bottom] = (void *)(uintptr_t)cache->free_rooms[order];
    cache->free_rooms[order] = (uint16_t)bottom;
}

/* The bin moves to a larger room, or to its first. */
static bool move(struct cache *cache, uint32_t class_index, uint32_t order, uint32_t capacity)
{
    struct room *room = &cache->rooms[class_index];
    uint32_t bottom = take(cache, order), top = 0;
    if (bottom == 0)
        return false;
    if (room->bottom != 0 && !hak_bin_close(cache->bins, class_index, &top)) {
        give(cache, bottom, order);
        return false;
    }
    uint32_t old_bottom = room->bottom, old_order = room->order;
    uint32_t held = old_bottom != 0 ? old_bottom - top : 0;
    void **words = words_of(cache);
    hak_assert(held < 1u << order); /* else other bins' slots would be written over */
    words[bottom] = NULL;
    memcpy(words + bottom - held, words + top, held * sizeof *words);
    hak_bin_open(cache->bins, class_index,
                 (struct bin_slots){bottom, bottom - held, bottom - capacity});
    hak_word_publish(&room->bottom, (uint16_t)bottom);
    room->order = (uint8_t)order;
    if (old_bottom != 0)
        give(cache, old_bottom, old_order);
    return true;
}

bool hak_room_resize(struct cache *cache, uint32_t class_index, uint32_t capacity)
{
    struct room *room = &cache->rooms[class_index];
    uint32_t order = hak_bit_highest(hak_most(capacity + 1, HAK_BIN_SLOTS_LEAST) * 2 - 1);
    hak_assert(order < HAK_ROOM_ORDERS);
    if (room->bottom == 0 || order > room->order)
        return move(cache, class_index, order, capacity);
    struct bin *bin = hak_bin_of(cache->bins, class_index);
    hak_assert(hak_word_peek(&bin->top) != 0); /* else a push would write over headers */
    hak_word_publish(&bin->limit, (uint16_t)(room->bottom - capacity));
    return true;
}

/* The room is found from the header, of a closed bin from its top on: whoever left may have begun
 * to note other bins. A bin that was to get its first room has none. */
static void mend(struct cache *cache, uint32_t class_index)
{
    const struct bin *bin = hak_bin_of(cache->bins, class_index);
    struct bin_slots slots = {.bottom = hak_word_peek(&bin->bottom),
                              .top = hak_word_peek(&bin->top),
                              .limit = hak_word_peek(&bin->limit)};
    bool is_closed = slots.top == 0;
    if (is_closed)
        slots.top = slots.limit = slots.bottom;
    while (words_of(cache)[slots.bottom] != NULL)
        slots.bottom++;
    hak_word_publish(&cache->rooms[class_index].bottom, (uint16_t)slots.bottom);
    /* It has at least the words down to its limit, and to what it holds beyond its capacity. */
    uint32_t lowest = (uint32_t)hak_least(slots.top, slots.limit);
    cache->rooms[class_index].order = (uint8_t)hak_bit_highest(slots.bottom - lowest + 1);
    cache->used_words = (uint32_t)hak_most(cache->used_words, slots.bottom + 1);
    if (is_closed && slots.bottom != 0)
        hak_bin_open(cache->bins, class_index, slots);
}

/* Rooms without a bin are not missed. */
void hak_rooms_mend(struct cache *cache)
{
    cache->used_words = HAK_FIRST_SLOT;
    memset(cache->free_rooms, 0, sizeof cache->free_rooms);
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        mend(cache, i);
    size_t bytes = 0;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        bytes += (size_t)hak_cache_capacity(cache, i) * hak_size_classes[i].block_bytes;
    hak_word_publish(&cache->capacity_bytes, bytes);
}
