/* SPDX-License-Identifier: MIT */
#include "cache/cache_list.h"

#include "cache/heaps.h"
#include "observe/decision.h"
#include "os/lock.h"
#include "os/os.h"
#include "policy/policy_table.h"
#include "region/meta.h"

/* A drain empties so many caches. */
#define DRAINED_AT_ONCE 64

static struct hak_lock caches_lock = HAK_LOCK_START_WITH(HAK_LOCK_CACHES);
static _Atomic(struct thread_cache *) all;
static struct thread_cache *free_caches;
static _Atomic size_t free_bytes; /* what their bins may hold */
static _Atomic bool has_free;     /* a hint; orphans, too */
/* Forks between the first process and this one. */
static uint32_t generation;
/* In a child: from here on the list of all may hold orphans. */
static struct thread_cache *orphans;
/* What this thread took last: until its thread pointer is set nothing else says that the cache has
 * a thread. */
static HAK_TLS struct thread_cache *last_taken;

struct thread_cache *hak_caches_first(void)
{
    /* acquire: partner is the release in create_locked */
    return hak_load_acquire(&all);
}

static void count_threads(uint32_t change)
{
    uint32_t count = hak_load_relaxed(&hak_active_caches) + change;
    hak_store_relaxed(&hak_active_caches, count);
    hak_heaps_note_threads(count);
}

static struct thread_cache *create_locked(void)
{
    struct thread_cache *cache = hak_meta_take(sizeof *cache);
    if (cache == NULL)
        return NULL;
    hak_cache_start(cache);
    cache->next = hak_load_relaxed(&all);
    /* release: partner is the acquire in hak_caches_first */
    hak_store_release(&all, cache);
    return cache;
}

static void free_locked(struct thread_cache *cache)
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

static void lose_locked(struct thread_cache *cache)
{
    hak_word_publish(&cache->place, CACHE_LOST);
    hak_stat_global_add(caches_lost, 1);
    hak_decide(lose_cache, cache->capacity_bytes);
}

/* Its thread stayed behind when the process was copied. */
static bool is_orphan(const struct thread_cache *cache)
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
static struct thread_cache *unlink_free(struct thread_cache **place)
{
    struct thread_cache *cache = *place;
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

struct thread_cache *hak_cache_take(void)
{
    hak_lock_take(&caches_lock);
    while (free_caches == NULL && orphans != NULL)
        settle_orphans(1);
    last_taken = free_caches; /* before a copy that a handler makes takes it for an orphan */
    hak_compiler_fence();
    struct thread_cache *cache = unlink_free(&free_caches);
    if (cache == NULL)
        cache = create_locked();
    last_taken = cache;
    if (cache != NULL) {
        cache->tick_ms = hak_os_clock_ms();
        count_threads(1);
    }
    hak_lock_give(&caches_lock);
    return cache;
}

static bool has_room_for(const struct thread_cache *cache)
{
    return hak_load_relaxed(&free_bytes) + cache->capacity_bytes <=
           hak_policy_read(free_cache_bytes);
}

void hak_cache_return(struct thread_cache *cache)
{
    hak_cache_set_state(cache, CACHE_BUSY);
    if (!has_room_for(cache))
        hak_cache_flush_all(cache);
    hak_cache_set_state(cache, CACHE_IDLE);
    hak_lock_take(&caches_lock);
    free_locked(cache);
    count_threads(-1u);
    last_taken = NULL;
    hak_lock_give(&caches_lock);
}

void hak_cache_lose(struct thread_cache *cache)
{
    hak_lock_take(&caches_lock);
    lose_locked(cache);
    count_threads(-1u);
    last_taken = NULL;
    hak_lock_give(&caches_lock);
}

/* A free cache that is not empty and has been free since then, taken off the list; NULL: none. */
static struct thread_cache *take_old(uint64_t before_ms)
{
    if (!hak_load_relaxed(&has_free) || !hak_lock_try(&caches_lock))
        return NULL;
    settle_orphans(DRAINED_AT_ONCE);
    struct thread_cache **place = &free_caches;
    while (*place != NULL && ((*place)->free_bytes == 0 || (*place)->free_ms > before_ms))
        place = &(*place)->next_free;
    struct thread_cache *cache = unlink_free(place);
    hak_lock_give(&caches_lock);
    return cache;
}

/* Who leaves by a jump meanwhile, or stays behind when the process is copied, loses the cache. */
void hak_caches_drain(uint64_t before_ms)
{
    struct thread_cache *cache;
    for (int i = 0; i < DRAINED_AT_ONCE && (cache = take_old(before_ms)) != NULL; i++) {
        hak_cache_set_state(cache, CACHE_BUSY);
        hak_cache_flush_all(cache);
        hak_cache_set_state(cache, CACHE_IDLE);
        hak_lock_take(&caches_lock);
        free_locked(cache);
        hak_lock_give(&caches_lock);
    }
}

void hak_caches_lock(void)
{
    hak_lock_take(&caches_lock);
}

void hak_caches_await(const struct thread_cache *own, uint32_t patience_ms)
{
    uint64_t deadline_ms = hak_os_clock_ms() + patience_ms;
    for (struct thread_cache *cache = hak_caches_first(); cache != NULL; cache = cache->next)
        while (cache != own && cache->place == CACHE_IN_USE && !is_orphan(cache) &&
               hak_cache_state(cache) == CACHE_BUSY && hak_os_clock_ms() < deadline_ms)
            hak_os_yield();
}

void hak_caches_unlock(void)
{
    hak_lock_give(&caches_lock);
}

/* From here on all caches in use but this thread's are orphans. */
static void begin_generation(struct thread_cache *own)
{
    generation++;
    orphans = hak_load_relaxed(&all);
    hak_store_relaxed(&has_free, true);
    if (last_taken != NULL)
        last_taken->generation = generation;
    if (own != NULL) {
        own->generation = generation;
        own->tick_ms = hak_os_clock_ms(); /* a child that soon becomes another program is in time */
    }
    hak_store_relaxed(&hak_active_caches, 0);
    count_threads(own != NULL);
}

void hak_caches_restart_in_child(struct thread_cache *own)
{
    hak_lock_reset(&caches_lock);
    begin_generation(own);
}

void hak_caches_mend(void)
{
    if (!hak_lock_is_left(&caches_lock))
        return;
    hak_store_relaxed(&free_bytes, 0); /* counted anew: their change may be half done, too */
    for (struct thread_cache *cache = free_caches; cache != NULL; cache = cache->next_free) {
        hak_counter_add(&free_bytes, cache->free_bytes);
        hak_word_publish(&cache->place,
                         CACHE_FREE); /* who was to take it had said so, and is gone */
    }
    hak_lock_give(&caches_lock);
}

void hak_caches_settle(struct thread_cache *own)
{
    if (!hak_lock_is_noted(HAK_LOCK_CACHES))
        begin_generation(own);
}
