/* SPDX-License-Identifier: MIT */
#include "heap/growth.h"

#include "heap/heaps.h"
#include "heap/limit.h"
#include "heap/rooms.h"
#include "misuse/harden.h"
#include "policy/policy_table.h"

/* A bin grows at every second miss. Bins of large blocks start with their eighth: what a program
 * needs once or twice goes straight back to its slab, where other classes can have the memory. */
#define MISSES_TO_GROW 2
#define MISSES_TO_START_LARGE 8
/* A bin of no more slots, or no more bytes, misses so often that it may grow to them where others
 * may not. */
#define FEW_SLOTS 15u
#define FEW_BYTES (32 * HAK_KIB)
/* What a bin may hold in any case: the few slots, up to so many bytes. */
#define FEW_LARGE_BYTES HAK_MIB
/* A bin of larger blocks than these may hold as many as one of these. */
#define AS_MANY_FROM_BYTES HAK_KIB
/* A new bin of large blocks may hold this much. */
#define START_BYTES (16 * HAK_KIB)
/* Large blocks leave one part in so many of what a cache may hold to small ones. */
#define PARTS_FOR_SMALL 4
/* What a thread's bins may hold however many threads there are. */
#define THREAD_BYTES_LEAST (64 * HAK_KIB)
/* All bins together may hold one part in so many of the limit, and so much however little memory is
 * held. */
#define PARTS_OF_LIMIT 8
#define ALL_BYTES_LEAST (4 * HAK_MIB)

/* Where each call is only counted, bins stay without slots. */
void hak_growth_begin(struct room *room)
{
    room->miss_count = 0;
    room->is_grown = hak_harden_has(HARDEN_WATCHED) && !hak_harden_has(HARDEN_EXACT);
}

static uint32_t capacity_most(uint32_t class_index)
{
    uint32_t block_bytes = hak_size_classes[class_index].block_bytes;
    size_t bytes = hak_policy_read(class_cache_bytes);
    if (block_bytes >= HAK_LARGE_BIN_BLOCK_BYTES)
        bytes = hak_policy_read(large_class_cache_bytes);
    else if (block_bytes > AS_MANY_FROM_BYTES)
        bytes = bytes / AS_MANY_FROM_BYTES * block_bytes;
    size_t few_bytes = hak_least(FEW_SLOTS * (size_t)block_bytes, FEW_LARGE_BYTES);
    return (uint32_t)hak_least(hak_most(bytes, few_bytes) / block_bytes, HAK_BIN_SLOTS_MOST - 1);
}

/* What all bins of all caches may hold when one grows to few slots, or to many. */
static size_t process_bound_bytes(bool are_few)
{
    size_t bytes =
        hak_least(hak_policy_read(process_cache_bytes), hak_limit_soft_bytes() / PARTS_OF_LIMIT);
    if (are_few)
        return bytes;
    size_t held_share = hak_held_bytes() / 100 * hak_policy_read(cache_percent);
    return hak_least(bytes, hak_most(held_share, ALL_BYTES_LEAST));
}

/* What all bins of a cache may hold when one grows to so many slots. */
static size_t thread_bound_bytes(uint32_t capacity, size_t block_bytes)
{
    bool are_few = capacity <= FEW_SLOTS || capacity * block_bytes <= FEW_BYTES;
    size_t share = process_bound_bytes(are_few) / (hak_load_relaxed(&hak_active_caches) + 1);
    size_t most = hak_policy_read(thread_cache_bytes);
    return hak_clamp(share, THREAD_BYTES_LEAST, are_few ? most : most / 2);
}

static uint32_t misses_to_grow(uint32_t capacity, uint32_t block_bytes)
{
    if (capacity != 0)
        return MISSES_TO_GROW;
    return block_bytes < HAK_LARGE_BIN_BLOCK_BYTES ? 1 : MISSES_TO_START_LARGE;
}

/* Few, but so many that half of them are a cache line: what a refill brings is one thread's. */
static uint32_t first_capacity(uint32_t block_bytes)
{
    uint32_t line = 2 * HAK_CACHE_LINE_BYTES / block_bytes;
    uint32_t few = (uint32_t)hak_most(HAK_BIN_SLOTS_LEAST, line) - 1;
    return (uint32_t)hak_clamp(START_BYTES / block_bytes, 1, few);
}

/* Under the lock. */
static bool resize(struct cache *cache, uint32_t class_index, uint32_t capacity)
{
    size_t block_bytes = hak_size_classes[class_index].block_bytes;
    uint32_t before = hak_cache_capacity(cache, class_index);
    if (before == capacity || !hak_room_resize(cache, class_index, capacity))
        return false;
    hak_word_publish(&cache->capacity_bytes,
                     cache->capacity_bytes + capacity * block_bytes - before * block_bytes);
    return true;
}

/* The next capacity of a bin; no more than now: it has the most. */
static uint32_t next_capacity(const struct cache *cache, uint32_t class_index)
{
    uint32_t before = hak_cache_capacity(cache, class_index);
    uint32_t capacity =
        before == 0 ? first_capacity(hak_size_classes[class_index].block_bytes) : before * 2u + 1u;
    return (uint32_t)hak_least(capacity, capacity_most(class_index));
}

/* Without the lock, a hint. */
static bool is_within_budget(const struct cache *cache, uint32_t class_index, uint32_t capacity)
{
    uint32_t before = hak_cache_capacity(cache, class_index);
    if (before == 0)
        return true;
    size_t block_bytes = hak_size_classes[class_index].block_bytes;
    size_t more_bytes = hak_excess(capacity, before) * block_bytes;
    size_t bound = thread_bound_bytes(capacity, block_bytes);
    if (block_bytes >= HAK_LARGE_BIN_BLOCK_BYTES)
        bound -= bound / PARTS_FOR_SMALL;
    return hak_word_peek(&cache->capacity_bytes) + more_bytes <= bound;
}

/* Gives a bin more slots, or its first ones, if there is budget; true when it grew. */
static bool grow_locked(struct cache *cache, uint32_t class_index)
{
    struct room *room = &cache->rooms[class_index];
    uint32_t capacity = next_capacity(cache, class_index);
    if (capacity <= hak_cache_capacity(cache, class_index)) {
        room->is_grown = true;
        return false;
    }
    if (!is_within_budget(cache, class_index, capacity) || !resize(cache, class_index, capacity))
        return false;
    room->is_grown = capacity == capacity_most(class_index);
    hak_stat_add_shared(&cache->stats, magazines_grown, 1);
    return true;
}

/* The lock is everybody's: not for a bin that cannot grow now. */
static HAK_NOINLINE bool grow(struct cache *cache, uint32_t class_index)
{
    if (!is_within_budget(cache, class_index, next_capacity(cache, class_index)) ||
        !hak_rooms_try_lock())
        return false;
    bool is_grown = grow_locked(cache, class_index);
    hak_rooms_unlock();
    return is_grown;
}

bool hak_growth_note_miss(struct cache *cache, uint32_t class_index)
{
    struct room *room = &cache->rooms[class_index];
    room->was_missed = true;
    if (HAK_LIKELY(room->is_grown))
        return false;
    if (++room->miss_count < misses_to_grow(hak_cache_capacity(cache, class_index),
                                            hak_size_classes[class_index].block_bytes))
        return false;
    room->miss_count = 0;
    return grow(cache, class_index);
}

static bool lower(struct cache *cache, uint32_t class_index, uint32_t capacity)
{
    if (cache->rooms[class_index].bottom == 0 || !hak_rooms_try_lock())
        return false;
    bool is_lower = resize(cache, class_index, capacity);
    hak_growth_begin(&cache->rooms[class_index]);
    hak_rooms_unlock();
    return is_lower;
}

void hak_growth_shrink(struct cache *cache, uint32_t class_index, uint32_t capacity)
{
    if (lower(cache, class_index, capacity))
        hak_stat_add_shared(&cache->stats, magazines_shrunk, 1);
}

void hak_growth_undo(struct cache *cache, uint32_t class_index)
{
    lower(cache, class_index, 0);
}
