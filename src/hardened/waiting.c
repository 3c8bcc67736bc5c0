/* SPDX-License-Identifier: MIT */
#include "hardened/waiting.h"

#include "base/bits.h"
#include "base/check.h"
#include "conf/conf.h"
#include "heap/flush.h"
#include "heap/limit.h"
#include "misuse/canary.h"
#include "misuse/quarantine.h"
#include "misuse/report.h"
#include "region/meta.h"
#include "region/region.h"

/* Blocks that leave the quarantine so many places later are fetched from memory meanwhile. */
#define FETCHED_AHEAD 4
/* So much of a block is looked at while it waits. */
#define LOOKED_AT_BYTES_MOST (4 * HAK_KIB)
/* Each cache's share of the quarantine is at least this. */
#define SHARE_BYTES_LEAST (64 * HAK_KIB)
/* Large blocks that wait weigh little where they are shut, but are held, and have addresses: in all
 * caches together they leave this share of what there may be to requests of all threads. */
#define SPANS_SHARE 8u
/* No more gathers before it is flushed. */
#define GATHERED_BYTES_MOST (64 * HAK_KIB)

hak_static_assert(HAK_QUARANTINE_GATHERED <= HAK_FLUSH_BLOCKS_MOST, "they are flushed together");

static _Noreturn HAK_NOINLINE void report(const void *block)
{
    struct mark mark = hak_mark_unpack(hak_load_relaxed(hak_mark_at(block)));
    hak_misuse("use after free", block, mark.bytes, "written to while it was free");
}

static void verify(const void *block, size_t capacity)
{
    if (hak_harden_has(HARDEN_ZERO) && HAK_UNLIKELY(!hak_canary_is_zero(block, capacity)))
        report(block);
}

/* The quarantine of the cache, made if there is none; NULL: no cache, or out of memory. */
static struct quarantine *quarantine_of(struct cache *cache)
{
    if (HAK_UNLIKELY(cache == NULL))
        return NULL;
    struct quarantine *quarantine = hak_load_relaxed(&cache->quarantine);
    if (HAK_UNLIKELY(quarantine == NULL)) {
        quarantine = hak_meta_take(sizeof *quarantine);
        /* release: partner is the acquire of the census (heap/census.h) */
        hak_store_release(&cache->quarantine, quarantine);
    }
    return quarantine;
}

/* The bound of this quarantine: the total, divided by the number of caches. */
static size_t most_bytes(struct quarantine *quarantine)
{
    uint32_t caches = hak_load_relaxed(&hak_active_caches) + 1;
    if (HAK_UNLIKELY(quarantine->sharers != caches)) {
        size_t all = (size_t)hak_conf_number(quarantine);
        quarantine->sharers = caches;
        quarantine->most_bytes = hak_clamp(all / caches, hak_least(SHARE_BYTES_LEAST, all), all);
    }
    return quarantine->most_bytes;
}

/* That large blocks may take up in a quarantine: they still wait under a limit, since a use after
 * free is stopped only while they do. */
static size_t most_span_bytes(void)
{
    size_t most = hak_least(hak_limit_soft_bytes(), hak_region_most_bytes());
    size_t caches = (size_t)hak_load_relaxed(&hak_active_caches) + 1;
    return hak_least(most, hak_region.window_bytes) / SPANS_SHARE / caches;
}

static void send_home(struct quarantine *quarantine, struct cache *cache)
{
    hak_flush_mixed(quarantine->gathered, quarantine->gathered_count, &cache->stats);
    quarantine->gathered_bytes = 0;
    hak_word_publish(&quarantine->gathered_count, 0);
}

/* A block of a slab has waited long enough. */
static void gather(struct quarantine *quarantine, struct cache *cache, void *block, size_t capacity)
{
    verify(block, capacity);
    hak_quarantine_gather(quarantine, block, capacity);
    if (quarantine->gathered_count == HAK_QUARANTINE_GATHERED ||
        quarantine->gathered_bytes > GATHERED_BYTES_MOST)
        send_home(quarantine, cache);
}

/* The bytes of the block that count in a quarantine. */
static size_t weight_of(const struct place *place)
{
    struct mark mark = hak_mark_unpack(hak_load_relaxed(place->mark));
    return mark.kind == MARK_SHUT ? hak_os_page_bytes() : place->capacity;
}

static void leave_large(struct quarantine *quarantine, void *block)
{
    struct place place;
    bool is_marked = hak_place_find(block, "invalid free", &place);
    hak_require(is_marked, "what waits in a quarantine has a mark");
    hak_quarantine_pop(quarantine, weight_of(&place));
    quarantine->span_bytes -= place.capacity;
    hak_hardened_block_give_large(&place);
}

/* The block that waits longest leaves the quarantine. */
static void leave(struct quarantine *quarantine, struct cache *cache)
{
    void *block = hak_quarantine_first(quarantine);
    uint32_t tag = hak_tag_read(hak_granule_of(block));
    if (HAK_LIKELY(quarantine->count > FETCHED_AHEAD))
        __builtin_prefetch(hak_quarantine_at(quarantine, FETCHED_AHEAD), 1);
    if (HAK_UNLIKELY(!hak_tag_is_class(tag))) {
        leave_large(quarantine, block);
        return;
    }
    size_t capacity = hak_size_classes[hak_tag_class(tag)].block_bytes;
    hak_quarantine_pop(quarantine, capacity);
    gather(quarantine, cache, block, capacity);
}

static void trim(struct quarantine *quarantine, struct cache *cache, size_t bytes)
{
    while ((quarantine->bytes > bytes || hak_quarantine_is_full(quarantine)) &&
           quarantine->count != 0)
        leave(quarantine, cache);
}

static void push_large(struct quarantine *quarantine, struct cache *cache,
                       const struct place *place)
{
    size_t most = most_span_bytes();
    if (HAK_UNLIKELY(place->capacity > most)) {
        hak_hardened_block_give_large(place);
        return;
    }
    while (quarantine->span_bytes > most - place->capacity)
        leave(quarantine, cache);
    hak_quarantine_push(quarantine, place->block, weight_of(place));
    quarantine->span_bytes += place->capacity;
}

/* Goes home at once: there is nowhere to wait. */
static void give(const struct place *place)
{
    if (place->slab == NULL) {
        hak_hardened_block_give_large(place);
        return;
    }
    verify(place->block, place->capacity);
    hak_flush_one(place->slab, place->block);
}

bool hak_waiting_keep(struct cache *cache, const struct place *place)
{
    struct quarantine *quarantine = quarantine_of(cache);
    bool waits = hak_harden_has(HARDEN_QUARANTINE);
    if (HAK_UNLIKELY(quarantine == NULL || (!waits && place->slab == NULL))) {
        give(place);
        return true;
    }
    if (HAK_LIKELY(waits)) {
        if (HAK_LIKELY(place->slab != NULL))
            hak_quarantine_push(quarantine, place->block, place->capacity);
        else
            push_large(quarantine, cache, place);
        trim(quarantine, cache, most_bytes(quarantine));
    } else {
        gather(quarantine, cache, place->block, place->capacity);
    }
    return quarantine->gathered_count == 0;
}

void hak_waiting_look(struct cache *cache)
{
    const struct quarantine *quarantine = hak_load_relaxed(&cache->quarantine);
    if (quarantine == NULL || quarantine->count == 0)
        return;
    const void *block = hak_quarantine_at(quarantine, quarantine->count - 1);
    uint32_t tag = hak_tag_read(hak_granule_of(block));
    if (!hak_tag_is_class(tag))
        return;
    size_t capacity = hak_size_classes[hak_tag_class(tag)].block_bytes;
    verify(block, hak_least(capacity, LOOKED_AT_BYTES_MOST));
}

void hak_waiting_drain(struct cache *cache)
{
    struct quarantine *quarantine = hak_load_relaxed(&cache->quarantine);
    if (HAK_LIKELY(quarantine == NULL))
        return;
    trim(quarantine, cache, 0);
    send_home(quarantine, cache);
}
