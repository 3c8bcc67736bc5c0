/* SPDX-License-Identifier: MIT */
#include "profile/sites.h"

#include "base/bits.h"
#include "os/copy_mark.h"
#include "region/meta.h"

/* Sites come in chunks. */
#define CHUNK_SITES 40u
#define CHUNKS (HAK_BOARD_SITES / CHUNK_SITES)
hak_static_assert(HAK_BOARD_SITES % CHUNK_SITES == 0, "whole chunks");
#define BUCKETS 4096u
#define PROBES_MOST 64u
hak_static_assert(HAK_BOARD_SITES < UINT16_MAX, "a bucket holds the number of a site");
/* From so many sites on new stacks are cut to so many frames. */
#define CROWDED_SITES (HAK_BOARD_SITES / 4 * 3)
#define CROWDED_FRAMES 8u
#define FULL_SITES (HAK_BOARD_SITES / 8 * 7)
#define FULL_FRAMES 3u
/* Up to so many sites stacks that free get ones of their own. */
#define FREEING_SITES (HAK_BOARD_SITES / 2)
#define LIFE_US_MOST ((uint64_t)1 << 62)

struct chunk {
    struct board_site sites[CHUNK_SITES];
};

HAK_AT_HAND struct board_dropped hak_sites_dropped;

static struct chunk first_chunk;
static _Atomic(struct chunk *) chunks[CHUNKS]; /* but the first one */
static struct meta_pool chunk_pool;
static _Atomic uint16_t buckets[BUCKETS];
static _Atomic uint32_t site_count = 1;
HAK_AT_HAND static _Atomic(struct profile_board *) shown;
HAK_AT_HAND static _Atomic uint32_t shown_count; /* sites that the board has memory for */

static struct board_site *site_at(uint32_t site)
{
    /* acquire: partner is the release in make_chunk */
    struct chunk *chunk =
        site < CHUNK_SITES ? &first_chunk : hak_load_acquire(&chunks[site / CHUNK_SITES]);
    return chunk == NULL ? NULL : &chunk->sites[site % CHUNK_SITES];
}

/* Of the board that shows it; NULL: none does. */
static struct board_site *shown_at(uint32_t site)
{
    /* acquire: partner is the release in hak_sites_show */
    struct profile_board *board = hak_load_acquire(&shown);
    if (board == NULL || site >= hak_load_relaxed(&shown_count) || hak_copy_is_unnoticed())
        return NULL;
    return &board->sites[site];
}

static bool make_chunk(uint32_t site)
{
    _Atomic(struct chunk *) *place = &chunks[site / CHUNK_SITES];
    struct chunk *none = NULL;
    struct chunk *chunk = hak_meta_pool_take(&chunk_pool, sizeof *chunk);
    if (chunk == NULL)
        return false;
    /* release: partner is the acquire in site_at */
    if (!atomic_compare_exchange_strong_explicit(place, &none, chunk, memory_order_release,
                                                 memory_order_relaxed))
        hak_meta_pool_give(&chunk_pool, chunk);
    return true;
}

static uint64_t hash_of(const uintptr_t *frames, uint32_t frame_count)
{
    uint64_t hash = frame_count;
    for (uint32_t i = 0; i < frame_count; i++)
        hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15ull ^ hash >> 29;
    return hash ^ hash >> 32;
}

static bool is_stack(const struct board_site *site, const uintptr_t *frames, uint32_t frame_count)
{
    if (site->frame_count != frame_count)
        return false;
    for (uint32_t i = 0; i < frame_count; i++)
        if (site->frames[i] != frames[i])
            return false;
    return true;
}

static void raise(_Atomic uint64_t *to, uint64_t value)
{
    uint64_t seen = hak_load_relaxed(to);
    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               to, &seen, value, memory_order_relaxed, memory_order_relaxed))
        continue;
}

static void show_stack(uint32_t site)
{
    const struct board_site *from = site_at(site);
    struct board_site *to = shown_at(site);
    /* acquire: partner is the release below, by another thread */
    if (to == NULL || hak_load_acquire(&to->state) == BOARD_READY)
        return;
    hak_word_publish(&to->frame_count, from->frame_count);
    for (uint32_t i = 0; i < from->frame_count; i++)
        hak_word_publish(&to->frames[i], from->frames[i]);
    /* release: partner is the acquire of the board's readers */
    hak_store_release(&to->state, BOARD_READY);
    /* acquire: partner is the release in hak_sites_show */
    raise(&hak_load_acquire(&shown)->head.site_count, site + 1);
}

/* A site for a stack that has none; 0: there is no room. */
static uint32_t claim(const uintptr_t *frames, uint32_t frame_count, bool may_grow)
{
    uint32_t site = hak_load_relaxed(&site_count);
    do {
        if (site >= HAK_BOARD_SITES || (site_at(site) == NULL && !(may_grow && make_chunk(site))))
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&site_count, &site, site + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    struct board_site *record = site_at(site);
    record->frame_count = frame_count;
    for (uint32_t i = 0; i < frame_count; i++)
        record->frames[i] = frames[i];
    /* release: partner is the acquire in hak_sites_at */
    hak_store_release(&record->state, BOARD_READY);
    show_stack(site);
    return site;
}

/* The bucket that has the stack, or the first free one; NULL: neither. */
static _Atomic uint16_t *probe(const uintptr_t *frames, uint32_t frame_count, uint32_t *site)
{
    uint64_t hash = hash_of(frames, frame_count);
    *site = 0;
    if (hak_sites_count() == 1) /* all are free: a look would only touch the page once more */
        return &buckets[hash % BUCKETS];
    for (uint32_t i = 0; i < PROBES_MOST; i++) {
        _Atomic uint16_t *bucket = &buckets[(hash + i) % BUCKETS];
        *site = hak_load_acquire(bucket); /* partner: the release in `enter` */
        if (*site == 0 || is_stack(site_at(*site), frames, frame_count))
            return bucket;
    }
    *site = 0;
    return NULL;
}

static uint32_t enter(const uintptr_t *frames, uint32_t frame_count, bool may_grow)
{
    uint32_t found, made = 0;
    for (;;) {
        _Atomic uint16_t *bucket = probe(frames, frame_count, &found);
        if (bucket == NULL || found != 0)
            return found;
        if (made == 0 && (made = claim(frames, frame_count, may_grow)) == 0)
            return 0;
        uint16_t none = 0;
        /* release: partner is the acquire in `probe` */
        if (atomic_compare_exchange_strong_explicit(bucket, &none, (uint16_t)made,
                                                    memory_order_release, memory_order_relaxed))
            return made;
    }
}

uint32_t hak_sites_find(const uintptr_t *frames, uint32_t frame_count, bool may_grow)
{
    uint32_t site, count = hak_load_relaxed(&site_count);
    frame_count = (uint32_t)hak_least(frame_count, HAK_BOARD_FRAMES);
    probe(frames, frame_count, &site);
    if (site != 0)
        return site;
    if (count >= FULL_SITES)
        frame_count = (uint32_t)hak_least(frame_count, FULL_FRAMES);
    else if (count >= CROWDED_SITES)
        frame_count = (uint32_t)hak_least(frame_count, CROWDED_FRAMES);
    site = frame_count == 0 ? 0 : enter(frames, frame_count, may_grow);
    if (site == 0)
        hak_sites_note_dropped(sites_full);
    return site;
}

uint32_t hak_sites_find_freeing(const uintptr_t *frames, uint32_t frame_count)
{
    uint32_t site;
    probe(frames, frame_count, &site);
    if (site != 0 || frame_count == 0 || hak_load_relaxed(&site_count) >= FREEING_SITES)
        return site;
    return enter(frames, frame_count, true);
}

/* Adds to the process's own counter, and shows it. */
#define ADD(site, field, value)                                                                    \
    do {                                                                                           \
        uint64_t value_ = (value);                                                                 \
        uint64_t sum_ = hak_fetch_add_relaxed(&site_at(site)->field, value_) + value_;             \
        struct board_site *shown_ = shown_at(site);                                                \
        if (shown_ != NULL)                                                                        \
            raise(&shown_->field, sum_);                                                           \
    } while (0)

static void set(uint32_t site, size_t offset, uint64_t value)
{
    struct board_site *places[] = {site_at(site), shown_at(site)};
    for (int i = 0; i < 2; i++)
        if (places[i] != NULL)
            hak_store_relaxed((_Atomic uint64_t *)(void *)((char *)places[i] + offset), value);
}
#define SET(site, field, value) set(site, offsetof(struct board_site, field), value)

void hak_sites_note_taken(uint32_t site, struct sample_sum sum, uint64_t now_ms)
{
    struct board_site *record = site_at(site);
    ADD(site, allocated_count, sum.count);
    ADD(site, allocated_bytes, sum.bytes);
    ADD(site, samples, 1);
    if (hak_load_relaxed(&record->first_ms) == 0)
        SET(site, first_ms, now_ms);
    SET(site, last_ms, now_ms);
    if (hak_load_relaxed(&record->oldest_ms) == 0)
        SET(site, oldest_ms, now_ms);
}

static uint32_t bucket_of(uint64_t life_ns)
{
    uint64_t life_ms = life_ns / 1000000;
    uint32_t bucket = life_ms == 0 ? 0 : hak_bit_highest(life_ms) / 2 + 1;
    return (uint32_t)hak_least(bucket, HAK_BOARD_LIFE_BUCKETS - 1);
}

/* What is to be added, in microseconds: nothing where the sum would become too large. */
static uint64_t life_of(const struct board_site *site, struct sample_sum sum, uint64_t life_ns)
{
    uint64_t life_us;
    bool is_over = __builtin_mul_overflow(life_ns / 1000, sum.count, &life_us);
    uint64_t room = LIFE_US_MOST - hak_least(hak_load_relaxed(&site->life_us), LIFE_US_MOST);
    return is_over || life_us > room ? 0 : life_us;
}

void hak_sites_note_ended(uint32_t site, struct sample_sum sum, uint64_t life_ns)
{
    struct board_site *record = site_at(site), *copy = shown_at(site);
    uint32_t bucket = bucket_of(life_ns);
    ADD(site, freed_count, sum.count);
    ADD(site, freed_bytes, sum.bytes);
    ADD(site, life_us, life_of(record, sum, life_ns));
    ADD(site, ended_samples, 1);
    uint32_t lives = hak_fetch_add_relaxed(&record->life[bucket], 1) + 1;
    if (copy != NULL)
        hak_store_relaxed(&copy->life[bucket], lives);
    if (hak_load_relaxed(&record->ended_samples) == hak_load_relaxed(&record->samples))
        SET(site, oldest_ms, 0);
}

void hak_sites_note_freed_by(uint32_t site, uint32_t freeing)
{
    if (hak_load_relaxed(&site_at(site)->freed_by) != freeing)
        SET(site, freed_by, freeing);
}

void hak_sites_note_resized(uint32_t site, uint64_t before_bytes, uint64_t bytes)
{
    if (bytes > before_bytes)
        ADD(site, allocated_bytes, bytes - before_bytes);
    else
        ADD(site, freed_bytes, before_bytes - bytes);
}

void hak_sites_set_oldest(uint32_t site, uint64_t oldest_ms)
{
    if (hak_load_relaxed(&site_at(site)->oldest_ms) != oldest_ms)
        SET(site, oldest_ms, oldest_ms);
}

uint32_t hak_sites_count(void)
{
    return hak_load_relaxed(&site_count);
}

const struct board_site *hak_sites_at(uint32_t site)
{
    const struct board_site *record = site < hak_sites_count() ? site_at(site) : NULL;
    /* acquire: partner is the release in `claim` */
    bool is_ready =
        record != NULL && (site == 0 || hak_load_acquire(&record->state) == BOARD_READY);
    return is_ready ? record : NULL;
}

static void show_sums(uint32_t site)
{
    const struct board_site *from = hak_sites_at(site);
    struct board_site *to = shown_at(site);
    if (from == NULL || to == NULL)
        return;
    show_stack(site);
#define SHOW(field) raise(&to->field, hak_load_relaxed(&from->field))
    SHOW(allocated_count);
    SHOW(allocated_bytes);
    SHOW(samples);
    SHOW(freed_count);
    SHOW(freed_bytes);
    SHOW(life_us);
    SHOW(ended_samples);
    SHOW(first_ms);
    SHOW(last_ms);
    SHOW(oldest_ms);
#undef SHOW
    hak_store_relaxed(&to->freed_by, hak_load_relaxed(&from->freed_by));
    for (uint32_t i = 0; i < HAK_BOARD_LIFE_BUCKETS; i++)
        hak_store_relaxed(&to->life[i], hak_load_relaxed(&from->life[i]));
}

void hak_sites_show(struct profile_board *board, uint32_t count)
{
    /* Fewer at first: a board that is not this one need not have memory for as many. */
    if (hak_load_relaxed(&shown) != board)
        hak_store_relaxed(&shown_count, 0);
    /* release: partner is the acquire in shown_at, so that its caller finds the board's memory */
    hak_store_release(&shown, board);
    hak_store_release(&shown_count, count);
    if (board == NULL)
        return;
    for (uint32_t i = 0; i < hak_sites_count() && i < count; i++)
        show_sums(i);
}
