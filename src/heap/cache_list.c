/* SPDX-License-Identifier: MIT */
#include "heap/cache_list.h"

#include "conf/conf.h"
#include "heap/cpu_cache.h"
#include "heap/flush.h"
#include "heap/growth.h"
#include "heap/heaps.h"
#include "heap/rooms.h"
#include "heap/slot.h"
#include "misuse/harden.h"
#include "misuse/quarantine.h"
#include "misuse/sampled_guard.h"
#include "os/lock.h"
#include "os/os.h"
#include "policy/policy_table.h"
#include "region/meta.h"
#include "stats/event_log.h"

/* A drain empties so many caches. */
#define DRAINED_AT_ONCE 64

static _Atomic(struct cache *) all;
static struct cache *free_caches;
static _Atomic size_t free_bytes; /* what their bins may hold */
static _Atomic bool has_free;     /* a hint; orphans, too */
/* Forks between the first process and this one. */
static uint32_t generation;
/* In a child: from here on the list of all may hold orphans. */
static struct cache *orphans;
/* What this thread took last: until its hak_here is set nothing else says that the cache has a
 * thread. */
static HAK_TLS struct cache *last_taken;

struct cache *hak_caches_first(void)
{
    /* acquire: partner is the release in `publish` */
    return hak_load_acquire(&all);
}

static uint32_t slot_count;      /* that were ever made */
static uint32_t processor_count; /* that have a cache */
static enum rseq_reason reason = RSEQ_UNREGISTERED;

static enum rseq_reason find_reason(uint32_t *ids)
{
    if (!hak_has_cpu_caches)
        return RSEQ_BUILD;
    if (hak_conf_number(caches) == CACHES_THREAD)
        return RSEQ_CHOSEN;
    if (hak_harden_has(HARDEN_WATCHED))
        return RSEQ_WATCHED;
    return hak_os_rseq_start(HAK_PROCESSORS_MOST, ids);
}

void hak_caches_start(void)
{
    uint32_t ids = 0;
    reason = find_reason(&ids);
    for (uint32_t i = 0; reason == RSEQ_PROCESSOR && i < ids; i++)
        hak_word_publish(&hak_bins_of[i], (struct bins *)&hak_bins_closed);
}

enum rseq_reason hak_caches_reason(void)
{
    return reason;
}

static void count_caches(uint32_t change)
{
    uint32_t count = hak_load_relaxed(&hak_active_caches) + change;
    hak_store_relaxed(&hak_active_caches, count);
    hak_heaps_note_threads(count);
}

/* Others find the cache by its place in the list, and threads by its id. */
static void publish(struct cache *cache)
{
    cache->next = hak_load_relaxed(&all);
    /* release: partner is the acquire in hak_caches_first */
    hak_store_release(&all, cache);
    hak_rooms_show(cache);
}

/* Before the lock is taken, for which others may wait. */
static void make_room(bool is_processors)
{
    hak_meta_make_room(hak_rooms_bytes(is_processors) + sizeof(struct cache));
}

static struct cache *create_locked(uint32_t id, enum cache_place place)
{
    uint32_t word_count;
    struct bins *bins = hak_rooms_create(&word_count, hak_id_is_processor(id));
    struct cache *cache = bins == NULL ? NULL : hak_meta_take(sizeof *cache);
    if (cache == NULL) {
        if (bins != NULL)
            hak_rooms_destroy(bins, word_count, hak_id_is_processor(id));
        return NULL;
    }
    cache->id = id;
    cache->place = place;
    cache->here = (struct rseq_area){.cpu_id = id, .mm_cid = id};
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        hak_growth_begin(&cache->rooms[i]);
    hak_rooms_start(cache, bins, word_count);
    hak_store_relaxed(&cache->tick_ms, hak_os_clock_ms());
    hak_store_relaxed(&cache->guard_left_bytes, hak_sampled_guard_countdown());
    publish(cache);
    return cache;
}

static struct cache *create_slot_locked(void)
{
    if (slot_count == HAK_SLOTS_MOST)
        return NULL;
    struct cache *cache = create_locked(HAK_PROCESSORS_MOST + slot_count, CACHE_IN_USE);
    slot_count += cache != NULL;
    return cache;
}

bool hak_caches_are_full(void)
{
    return slot_count == HAK_SLOTS_MOST;
}

struct cache *hak_cache_of_processor(void)
{
    if (hak_own_cache() == NULL)
        make_room(true);
    hak_lock_take(&hak_caches_lock_word);
    uint32_t id = hak_here_id();
    struct cache *cache = hak_bins_of[id]->cache;
    if (cache == NULL) {
        cache = create_locked(id, CACHE_OF_PROCESSOR);
        processor_count += cache != NULL;
        count_caches(cache != NULL);
    }
    hak_lock_give(&hak_caches_lock_word);
    return cache;
}

static void free_locked(struct cache *cache)
{
    hak_word_publish(&cache->place, CACHE_FREE);
    cache->free_bytes = cache->capacity_bytes;
    cache->free_ms = hak_os_clock_ms();
    hak_counter_add(&free_bytes, cache->free_bytes);
    cache->next_free = free_caches;
    hak_compiler_fence();
    free_caches = cache;
    hak_store_relaxed(&has_free, true);
}

static void lose_locked(struct cache *cache)
{
    hak_word_publish(&cache->place, CACHE_LOST);
    hak_stat_global_add(caches_lost, 1);
    hak_event_log(lose_cache, cache->capacity_bytes);
}

/* Its thread stayed behind when the process was copied. */
static bool is_orphan(const struct cache *cache)
{
    return cache->place == CACHE_IN_USE && cache->generation != generation;
}

/* Looks at up to `limit` further caches for orphans. */
static void settle_orphans(uint32_t limit)
{
    for (; orphans != NULL && limit > 0; orphans = orphans->next, limit--) {
        if (!is_orphan(orphans))
            continue;
        if (hak_cache_state(orphans) == CACHE_BUSY) {
            lose_locked(orphans);
        } else {
            hak_cache_set_state(orphans, CACHE_IDLE);
            free_locked(orphans);
        }
    }
}

/* Takes a cache off the place that leads to it. */
static struct cache *unlink_free(struct cache **place)
{
    struct cache *cache = *place;
    if (cache == NULL)
        return NULL;
    hak_word_publish(&cache->place, CACHE_IN_USE);
    cache->generation = generation;
    hak_compiler_fence();
    *place = cache->next_free;
    hak_counter_add(&free_bytes, -cache->free_bytes);
    hak_store_relaxed(&has_free, free_caches != NULL || orphans != NULL);
    return cache;
}

struct cache *hak_cache_take(void)
{
    if (!hak_load_relaxed(&has_free))
        make_room(false);
    hak_lock_take(&hak_caches_lock_word);
    while (free_caches == NULL && orphans != NULL)
        settle_orphans(1);
    last_taken = free_caches; /* before a copy that a handler makes takes it for an orphan */
    hak_compiler_fence();
    struct cache *cache = unlink_free(&free_caches);
    if (cache == NULL)
        cache = create_slot_locked();
    last_taken = cache;
    if (cache != NULL) {
        hak_store_relaxed(&cache->tick_ms, hak_os_clock_ms());
        count_caches(1);
    }
    hak_lock_give(&hak_caches_lock_word);
    return cache;
}

static bool has_room_for(const struct cache *cache)
{
    return hak_load_relaxed(&free_bytes) + cache->capacity_bytes <=
           hak_policy_read(free_cache_bytes);
}

void hak_cache_return(struct cache *cache)
{
    hak_cache_set_state(cache, CACHE_BUSY);
    if (!has_room_for(cache))
        hak_cache_flush_all(cache);
    hak_cache_set_state(cache, CACHE_IDLE);
    hak_lock_take(&hak_caches_lock_word);
    free_locked(cache);
    count_caches(-1u);
    last_taken = NULL;
    hak_lock_give(&hak_caches_lock_word);
}

void hak_cache_lose(struct cache *cache)
{
    hak_lock_take(&hak_caches_lock_word);
    lose_locked(cache);
    count_caches(-1u);
    last_taken = NULL;
    hak_lock_give(&hak_caches_lock_word);
}

static bool withholds(const struct cache *cache)
{
    const struct quarantine *quarantine = hak_load_relaxed(&cache->quarantine);
    return quarantine != NULL && (quarantine->count | quarantine->gathered_count) != 0;
}

/* A free cache that is not empty and has been free since then, taken off the list; NULL: none. */
static struct cache *take_old(uint64_t before_ms, bool is_withheld_asked_for)
{
    if (!hak_load_relaxed(&has_free) || !hak_lock_try(&hak_caches_lock_word))
        return NULL;
    settle_orphans(DRAINED_AT_ONCE);
    struct cache **place = &free_caches;
    while (*place != NULL &&
           ((*place)->free_ms > before_ms ||
            ((*place)->free_bytes == 0 && !(is_withheld_asked_for && withholds(*place)))))
        place = &(*place)->next_free;
    struct cache *cache = unlink_free(place);
    hak_lock_give(&hak_caches_lock_word);
    return cache;
}

/* A thread that leaves by a jump meanwhile, or is absent from a copy, loses the cache. */
void hak_caches_drain(uint64_t before_ms, void (*drain)(struct cache *cache))
{
    struct cache *cache;
    for (int i = 0; i < DRAINED_AT_ONCE && (cache = take_old(before_ms, drain != NULL)) != NULL;
         i++) {
        hak_cache_set_state(cache, CACHE_BUSY);
        if (drain != NULL)
            drain(cache);
        hak_cache_flush_all(cache);
        hak_cache_set_state(cache, CACHE_IDLE);
        hak_lock_take(&hak_caches_lock_word);
        free_locked(cache);
        hak_lock_give(&hak_caches_lock_word);
    }
}

/* A processor's cache whose bins were taken out of the table. */
struct swapped {
    struct cache *cache;
    struct bins *bins;
    uint32_t word_count;
};

static uint64_t sum_of(const struct bins *bins)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        const struct bin *bin = &bins->bins[i + 1];
        sum = sum * 31 + hak_word_peek(&bin->top) + 65536ull * hak_word_peek(&bin->countdown);
    }
    return sum;
}

static bool holds_blocks(const struct cache *cache)
{
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        if (hak_cache_count(cache, i) != 0)
            return true;
    return false;
}

/* Nobody has used its bins since then, as far as was looked. */
static bool is_idle(struct cache *cache, uint64_t before_ms)
{
    uint64_t sum = sum_of(cache->bins);
    if (cache->seen_sum != sum) {
        cache->seen_sum = sum;
        cache->seen_ms = hak_os_clock_ms();
    }
    return cache->seen_ms <= before_ms && holds_blocks(cache);
}

/* From now on threads find empty bins; one in the middle of a sequence may still use the old
 * ones. */
static bool swap_out_locked(struct cache *cache, struct swapped *swapped)
{
    uint32_t word_count;
    struct bins *empty = hak_rooms_create(&word_count, true);
    if (empty == NULL)
        return false;
    *swapped = (struct swapped){cache, cache->bins, cache->word_count};
    /* acq_rel: as in begin_flight (heap/cache.c); partner is the acquire in is_being_changed */
    hak_fetch_add_acq_rel(&cache->in_flight, 1);
    hak_rooms_start(cache, empty, word_count);
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        hak_growth_begin(&cache->rooms[i]);
    hak_rooms_show(cache);
    return true;
}

/* Those that are idle, swapped out if there is a place for them; returns how many. */
static uint32_t find_idle(struct swapped *swapped, uint64_t before_ms)
{
    uint32_t count = 0;
    if (!hak_rooms_try_lock())
        return 0;
    for (struct cache *i = hak_caches_first(); i != NULL && count < DRAINED_AT_ONCE; i = i->next)
        if (i->place == CACHE_OF_PROCESSOR && is_idle(i, before_ms) &&
            (swapped == NULL || swap_out_locked(i, &swapped[count])))
            count++;
    hak_lock_give(&hak_caches_lock_word);
    return count;
}

/* Behind the fence the bins are nobody else's. */
static void empty_swapped(const struct swapped *swapped)
{
    struct cache *cache = swapped->cache;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++) {
        void *blocks[HAK_FLUSH_BLOCKS_MOST];
        uint32_t taken;
        while ((taken = hak_slot_pop_some(swapped->bins, i, blocks, HAK_FLUSH_BLOCKS_MOST)) != 0)
            hak_flush(blocks, taken, i, &cache->stats);
        uint64_t countdown = hak_bin_of(swapped->bins, i)->countdown;
        hak_fetch_add_relaxed(&cache->popped[i], -countdown);
    }
    hak_rooms_destroy(swapped->bins, swapped->word_count, true);
}

void hak_caches_drain_idle(uint64_t before_ms)
{
    struct swapped swapped[DRAINED_AT_ONCE];
    if (reason != RSEQ_PROCESSOR || hak_heap_is_held() || find_idle(NULL, before_ms) == 0 ||
        !hak_os_rseq_fence())
        return; /* where the kernel refuses fences, before anything is swapped out */
    uint32_t count = find_idle(swapped, before_ms);
    bool is_fenced = count == 0 || hak_os_rseq_fence();
    for (uint32_t i = 0; i < count; i++) {
        if (is_fenced)
            empty_swapped(&swapped[i]);
        /* Else their blocks are lost: somebody may still be in the middle of taking one. */
        /* acq_rel: partner is the acquire in is_being_changed */
        hak_fetch_sub_acq_rel(&swapped[i].cache->in_flight, 1);
    }
}

static bool is_being_changed(const struct cache *cache)
{
    /* acquire: partner is the release at the end of a flush */
    return hak_load_acquire(&cache->in_flight) > 0 ||
           (cache->place == CACHE_IN_USE && !is_orphan(cache) &&
            hak_cache_state(cache) == CACHE_BUSY);
}

void hak_caches_await(const struct cache *own, uint32_t patience_ms)
{
    uint64_t deadline_ms = hak_os_clock_ms() + patience_ms;
    for (struct cache *cache = hak_caches_first(); cache != NULL; cache = cache->next) {
        bool is_mine = cache == own && !hak_cache_is_processors(cache);
        while (!is_mine && is_being_changed(cache) && hak_os_clock_ms() < deadline_ms)
            hak_os_yield();
        /* A thread that left a flush by a jump is not waited for again. */
        if (hak_load_relaxed(&cache->in_flight) > 0 && hak_os_clock_ms() >= deadline_ms)
            hak_store_relaxed(&cache->in_flight, 0);
    }
}

/* From here on all caches in use but this thread's are orphans. */
static void begin_generation(struct cache *own)
{
    generation++;
    orphans = hak_load_relaxed(&all);
    hak_store_relaxed(&has_free, true);
    for (struct cache *cache = hak_caches_first(); cache != NULL; cache = cache->next)
        if (hak_cache_is_processors(cache))
            hak_store_relaxed(&cache->in_flight, 0); /* of threads that stayed behind */
    if (last_taken != NULL)
        last_taken->generation = generation;
    if (own != NULL) {
        own->generation = generation;
        /* A child that soon becomes another program is in time. */
        hak_store_relaxed(&own->tick_ms, hak_os_clock_ms());
    }
    hak_store_relaxed(&hak_active_caches, 0);
    count_caches(processor_count + (own != NULL && !hak_cache_is_processors(own)));
}

void hak_caches_restart_in_child(struct cache *own)
{
    hak_lock_reset(&hak_caches_lock_word);
    begin_generation(own);
}

/* What was being swapped out is lost, and what was being published is found. A slot that was being
 * made is known to the list, and perhaps to nobody else. */
static void mend_listed(void)
{
    processor_count = 0;
    for (struct cache *cache = hak_caches_first(); cache != NULL; cache = cache->next) {
        if (hak_cache_is_processors(cache)) {
            hak_rooms_mend(cache);
            processor_count++;
        } else {
            slot_count = (uint32_t)hak_most(slot_count, cache->id - HAK_PROCESSORS_MOST + 1);
        }
        hak_rooms_show(cache);
    }
}

void hak_caches_mend(void)
{
    if (!hak_lock_is_left(&hak_caches_lock_word))
        return;
    mend_listed();
    hak_store_relaxed(&free_bytes, 0); /* counted anew: their change may be half done, too */
    for (struct cache *cache = free_caches; cache != NULL; cache = cache->next_free) {
        hak_counter_add(&free_bytes, cache->free_bytes);
        hak_word_publish(&cache->place, CACHE_FREE); /* the thread that was taking it is gone */
    }
    hak_lock_give(&hak_caches_lock_word);
}

void hak_caches_settle(struct cache *own)
{
    if (!hak_lock_is_noted(HAK_LOCK_CACHES))
        begin_generation(own);
}
