/* SPDX-License-Identifier: MIT */
#include "heap/cache.h"

#include "heap/bin_check.h"
#include "heap/cpu_cache.h"
#include "heap/flush.h"
#include "heap/growth.h"
#include "heap/heaps.h"
#include "heap/order.h"
#include "heap/slot.h"
#include "heap/sweep.h"
#include "policy/policy_table.h"
#include "region/meta.h"
#include "stats/event_log.h"

uint32_t hak_cache_pop_some(struct cache *cache, uint32_t class_index, void **blocks, uint32_t most)
{
    if (hak_cache_is_processors(cache))
        return hak_cpu_cache_pop_some(HAK_BIN_OF_CLASS(class_index), blocks, most);
    return hak_slot_pop_some(cache->bins, class_index, blocks, most);
}

uint32_t hak_cache_push_some(struct cache *cache, uint32_t class_index, void *const *blocks,
                             uint32_t count)
{
    if (hak_cache_is_processors(cache))
        return hak_cpu_cache_push_some(HAK_BIN_OF_CLASS(class_index), blocks, count);
    return hak_slot_push_some(cache->bins, class_index, blocks, count);
}

/* acquire, release: partner is a fork, which must not copy a process whose blocks are out */
static void begin_flight(struct cache *cache)
{
    hak_fetch_add_acq_rel(&cache->in_flight, 1);
}

static void end_flight(struct cache *cache)
{
    hak_fetch_sub_acq_rel(&cache->in_flight, 1);
}

/* Sends the `count` newest blocks of a bin home. */
static void flush_newest(struct cache *cache, uint32_t class_index, uint32_t count)
{
    void *blocks[HAK_FLUSH_BLOCKS_MOST];
    uint32_t taken = HAK_FLUSH_BLOCKS_MOST;
    begin_flight(cache);
    for (; count > 0 && taken == HAK_FLUSH_BLOCKS_MOST; count -= taken) {
        taken = hak_cache_pop_some(cache, class_index, blocks,
                                   (uint32_t)hak_least(count, HAK_FLUSH_BLOCKS_MOST));
        hak_flush(blocks, taken, class_index, &cache->stats);
    }
    end_flight(cache);
}

static void flush_bin(struct cache *cache, uint32_t class_index)
{
    flush_newest(cache, class_index, hak_cache_count(cache, class_index));
}

/* So many blocks of a bin fit the stack of a signal handler; more need memory of their own. */
#define FEW_BLOCKS 256u
#define FEW_SEEN (FEW_BLOCKS / 2)
#define MANY_SEEN 2048u
#define MANY_WORDS 256u
struct many_blocks {
    void *blocks[HAK_BIN_SLOTS_MOST];
    uint64_t seen[MANY_SEEN];
    struct word words[MANY_WORDS];
    uint16_t places[2 * MANY_WORDS];
};
static struct meta_pool many_blocks;

/* Blocks that were taken out of a bin. */
struct batch {
    void **blocks;
    uint32_t most;
    struct bin_seen seen;
    struct words words;
};

static void flush_all_of(void **blocks, uint32_t count, uint32_t class_index, struct cache *cache)
{
    for (uint32_t n; count > 0; blocks += n, count -= n) {
        n = (uint32_t)hak_least(count, HAK_FLUSH_BLOCKS_MOST);
        hak_flush(blocks, n, class_index, &cache->stats);
    }
}

/* Puts the newest blocks of a batch back; what has no room, since others have filled the bin
 * meanwhile, goes home. */
static void put_back(const struct batch *batch, uint32_t count, struct cache *cache,
                     uint32_t class_index)
{
    uint32_t pushed = hak_cache_push_some(cache, class_index, batch->blocks, count);
    flush_all_of(batch->blocks, count - pushed, class_index, cache);
}

/* How many of so many blocks stay. Where no refill came since the last flush more are freed than
 * taken, and each that stays is checked again by the next flush: no small one stays. A bin of large
 * ones holds so few that half of them are kept from the next refill. */
static uint32_t share_kept(uint32_t held, bool was_flushed, bool is_large)
{
    uint32_t share = held * (uint32_t)hak_policy_read(flush_keep_percent) / 100;
    if (!was_flushed)
        return share;
    return is_large ? share / 2 : 0;
}

/* All blocks of the bin are taken out, and the newer ones, which are allocated next, are put back.
 * Of few large ones those stay whose slabs are the fullest: in that order they form no rows. A
 * block that was in the bin twice is found: where both go home, unless somebody takes it in
 * between. */
static void flush_older_by(struct batch *batch, struct cache *cache, uint32_t class_index)
{
    void **blocks = batch->blocks;
    struct room *room = &cache->rooms[class_index];
    bool is_large = hak_size_classes[class_index].block_bytes >= HAK_LARGE_BIN_BLOCK_BYTES;
    uint32_t held = hak_cache_pop_some(cache, class_index, blocks, batch->most);
    uint32_t kept = share_kept(held, room->was_flushed, is_large);
    bool is_ordered = is_large && held <= HAK_ORDER_BLOCKS_MOST;
    if (is_ordered)
        hak_order_by_slab_use(blocks, held);
    room->was_flushed = true;
    struct bin_checked bin = {blocks, kept, held};
    struct rows rest;
    if (!is_ordered && hak_bin_check_rows(&bin, class_index, &rest)) {
        put_back(batch, kept, cache, class_index);
        hak_flush_rows(&rest, class_index, &cache->stats);
    } else if (!is_ordered && hak_bin_check_words(&bin, class_index, &batch->words)) {
        put_back(batch, kept, cache, class_index);
        hak_flush_words(&batch->words, class_index, &cache->stats);
    } else {
        hak_bin_check_once(&bin, class_index, batch->seen);
        put_back(batch, kept, cache, class_index);
        flush_all_of(blocks + kept, held - kept, class_index, cache);
    }
}

/* All blocks are taken out, looked at, and put back. */
static void check_by(struct batch *batch, struct cache *cache, uint32_t class_index)
{
    uint32_t held = hak_cache_pop_some(cache, class_index, batch->blocks, batch->most);
    hak_bin_check_once(&(struct bin_checked){batch->blocks, held, held}, class_index, batch->seen);
    hak_flush_check(batch->blocks, held, class_index);
    put_back(batch, held, cache, class_index);
}

/* Does it with room for all blocks of the bin, if there is memory for so much. */
static void with_batch(struct cache *cache, uint32_t class_index,
                       void (*work)(struct batch *, struct cache *, uint32_t))
{
    struct many_blocks *many = NULL;
    begin_flight(cache);
    if (hak_cache_count(cache, class_index) > FEW_BLOCKS)
        many = hak_meta_pool_take(&many_blocks, sizeof *many);
    if (many == NULL) {
        void *few[FEW_BLOCKS];
        uint64_t seen[FEW_SEEN];
        struct few_words words;
        work(
            &(struct batch){
                few, FEW_BLOCKS, {seen, FEW_SEEN}, {words.words, words.places, HAK_WORDS_FEW, 0}},
            cache, class_index);
    } else {
        work(&(struct batch){many->blocks,
                             HAK_BIN_SLOTS_MOST,
                             {many->seen, MANY_SEEN},
                             {many->words, many->places, MANY_WORDS, 0}},
             cache, class_index);
        hak_meta_pool_give(&many_blocks, many);
    }
    end_flight(cache);
}

void hak_cache_check(struct cache *cache)
{
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        if (hak_cache_count(cache, i) != 0)
            with_batch(cache, i, check_by);
}

/* What its bins hold of the class may pin pages that could go back. */
static bool class_is_sparse(uint32_t class_index, size_t granules_least)
{
    const struct heap *heap = hak_heap_near();
    return heap != NULL && hak_heap_class_is_sparse(heap, class_index, granules_least);
}

/* The class shrinks, block by block all over its slabs: what its bin holds would pin pages that
 * could go back. It all goes home. (The bin keeps its slots: with 31 of them a burst that was freed
 * at random took a fifth more time.) */
static void drain(struct cache *cache, uint32_t class_index)
{
    flush_bin(cache, class_index);
    hak_stat_add_shared(&cache->stats, magazines_drained, 1);
    hak_event_log(drain_bin, hak_size_classes[class_index].block_bytes);
}

/* A phase of a program that freed its blocks at random leaves some of each slab in the bin. */
void hak_cache_drain_sparse(struct cache *cache, uint32_t but_class)
{
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        if (i != but_class && hak_cache_count(cache, i) != 0 && class_is_sparse(i, HAK_SPARSE_FEW))
            drain(cache, i);
}

void hak_cache_flush(struct cache *cache, uint32_t class_index)
{
    hak_stat_add_shared(&cache->stats, flushes, 1);
    bool is_large = hak_size_classes[class_index].block_bytes >= HAK_LARGE_BIN_BLOCK_BYTES;
    if (!is_large && hak_cache_capacity(cache, class_index) != 0 &&
        class_is_sparse(class_index, HAK_SPARSE_MANY)) {
        drain(cache, class_index);
        return;
    }
    if (hak_growth_note_miss(cache, class_index))
        return;
    with_batch(cache, class_index, flush_older_by);
}

void hak_cache_flush_class(struct cache *cache, uint32_t class_index)
{
    flush_bin(cache, class_index);
}

/* A thread that has been moved to another processor empties that one's bins. */
void hak_cache_flush_all(struct cache *cache)
{
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        flush_bin(cache, i);
        if (hak_cache_count(cache, i) == 0)
            hak_growth_undo(cache, i);
    }
}

static bool looks_quiet(struct cache *cache, uint32_t class_index)
{
    bool was_missed = cache->rooms[class_index].was_missed;
    cache->rooms[class_index].was_missed = false;
    return !was_missed;
}

void hak_cache_shrink_quiet(struct cache *cache, uint64_t now_ms)
{
    if (now_ms - hak_load_relaxed(&cache->quiet_check_ms) < hak_policy_read(quiet_ms))
        return;
    hak_store_relaxed(&cache->quiet_check_ms, now_ms);
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        uint32_t capacity = hak_cache_capacity(cache, i) / 2u;
        bool is_quiet = looks_quiet(cache, i);
        if (class_is_sparse(i, HAK_SPARSE_MANY))
            flush_bin(cache, i);
        if (!is_quiet || capacity < HAK_BIN_SLOTS_LEAST - 1)
            continue;
        uint32_t held = hak_cache_count(cache, i);
        if (held > capacity)
            flush_newest(cache, i, held - capacity);
        if (hak_cache_count(cache, i) <= capacity)
            hak_growth_shrink(cache, i, capacity);
    }
}

bool hak_cache_is_sound(struct cache *cache)
{
    size_t capacity_bytes = 0;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        uint32_t capacity = hak_cache_capacity(cache, i);
        /* What came to a processor's bin just before its limit fell stays. */
        if (hak_cache_count(cache, i) > capacity && !hak_cache_is_processors(cache))
            return false;
        capacity_bytes += (size_t)capacity * hak_size_classes[i].block_bytes;
    }
    return capacity_bytes == cache->capacity_bytes;
}
