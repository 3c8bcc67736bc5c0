/* SPDX-License-Identifier: MIT */
#include "cache/growth.h"

#include "cache/limit.h"
#include "harden/harden.h"
#include "policy/policy_table.h"

/* A bin grows at every second miss. Bins of large blocks start with their eighth: what a program
 * needs once or twice goes straight back to its slab, where other classes can have the memory. */
#define MISSES_TO_GROW 2
#define MISSES_TO_START_LARGE 8
/* Bins of blocks up to this size may have so many slots whatever they hold. */
#define MIDDLING_BYTES_MOST (32 * HAK_KIB)
#define MIDDLING_SLOTS_LEAST 15
/* A new bin of large blocks may hold this much. */
#define START_BYTES (16 * HAK_KIB)
/* What a thread's bins may hold however many threads there are. */
#define THREAD_BYTES_LEAST (64 * HAK_KIB)
/* All bins together may hold one part in so many of the limit. */
#define PARTS_OF_LIMIT 8

/* Where each call is looked at, bins stay without slots. */
void hak_growth_begin(struct magazine *magazine)
{
    magazine->miss_count = 0;
    magazine->is_grown = hak_harden_has(HARDEN_WATCHED);
}

static uint32_t capacity_most(uint32_t class_index)
{
    uint32_t block_bytes = hak_size_classes[class_index].block_bytes;
    size_t bytes = block_bytes < HAK_LARGE_BIN_BLOCK_BYTES
                       ? hak_policy_read(class_cache_bytes)
                       : hak_policy_read(large_class_cache_bytes);
    uint32_t least = block_bytes <= MIDDLING_BYTES_MOST ? MIDDLING_SLOTS_LEAST : 2;
    return (uint32_t)hak_least(hak_most(bytes / block_bytes, least), HAK_MAGAZINE_SLOTS_MOST - 1);
}

/* What all bins of this thread may hold. */
static size_t thread_bound_bytes(void)
{
    size_t bytes =
        hak_least(hak_policy_read(process_cache_bytes), hak_limit_soft_bytes() / PARTS_OF_LIMIT);
    size_t share = bytes / (hak_load_relaxed(&hak_active_caches) + 1);
    return hak_clamp(share, THREAD_BYTES_LEAST, hak_policy_read(thread_cache_bytes));
}

static uint32_t misses_to_grow(const struct magazine *magazine, uint32_t block_bytes)
{
    if (magazine->slots != NULL)
        return MISSES_TO_GROW;
    return block_bytes < HAK_LARGE_BIN_BLOCK_BYTES ? 1 : MISSES_TO_START_LARGE;
}

/* Few, but so many that half of them are a cache line: what a refill brings is one thread's. */
static uint32_t first_capacity(uint32_t block_bytes)
{
    uint32_t line = 2 * HAK_CACHE_LINE_BYTES / block_bytes;
    uint32_t few = (uint32_t)hak_most(HAK_MAGAZINE_SLOTS_LEAST, line) - 1;
    return (uint32_t)hak_clamp(START_BYTES / block_bytes, 1, few);
}

/* Gives a bin more slots, or its first ones, if there is budget; true when it grew. */
static HAK_NOINLINE bool grow(struct thread_cache *cache, uint32_t class_index)
{
    struct magazine *magazine = &cache->magazines[class_index];
    uint32_t block_bytes = hak_size_classes[class_index].block_bytes;
    uint32_t most = capacity_most(class_index);
    bool is_first = magazine->slots == NULL;
    uint32_t capacity = magazine->capacity * 2u + 1u;
    if (is_first)
        capacity = first_capacity(block_bytes);
    capacity = (uint32_t)hak_least(capacity, most);
    magazine->is_grown = capacity == most;
    if (capacity <= magazine->capacity)
        return false;
    size_t more_bytes = (size_t)(capacity - magazine->capacity) * block_bytes;
    if ((!is_first && cache->capacity_bytes + more_bytes > thread_bound_bytes()) ||
        !hak_magazine_resize(magazine, &cache->hot.bins[class_index], capacity)) {
        magazine->is_grown = false;
        return false;
    }
    cache->capacity_bytes += more_bytes;
    hak_stat_add(&cache->stats, magazines_grown, 1);
    return true;
}

bool hak_growth_note_miss(struct thread_cache *cache, uint32_t class_index)
{
    struct magazine *magazine = &cache->magazines[class_index];
    magazine->was_missed = true;
    if (HAK_LIKELY(magazine->is_grown))
        return false;
    if (++magazine->miss_count <
        misses_to_grow(magazine, hak_size_classes[class_index].block_bytes))
        return false;
    magazine->miss_count = 0;
    return grow(cache, class_index);
}

/* After a bin's slots were taken away, all or some. */
static void account_lost(struct thread_cache *cache, uint32_t class_index, uint32_t capacity_before)
{
    struct magazine *magazine = &cache->magazines[class_index];
    hak_growth_begin(magazine);
    cache->capacity_bytes -=
        (size_t)(capacity_before - magazine->capacity) * hak_size_classes[class_index].block_bytes;
}

void hak_growth_shrink(struct thread_cache *cache, uint32_t class_index, uint32_t capacity)
{
    struct magazine *magazine = &cache->magazines[class_index];
    uint32_t before = magazine->capacity;
    if (before == capacity ||
        !hak_magazine_resize(magazine, &cache->hot.bins[class_index], capacity))
        return;
    account_lost(cache, class_index, before);
    hak_stat_add(&cache->stats, magazines_shrunk, 1);
}

void hak_growth_undo(struct thread_cache *cache, uint32_t class_index)
{
    struct magazine *magazine = &cache->magazines[class_index];
    uint32_t before = magazine->capacity;
    hak_magazine_remove(magazine, &cache->hot.bins[class_index], &cache->sentinel);
    account_lost(cache, class_index, before);
}
