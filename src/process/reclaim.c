/* SPDX-License-Identifier: MIT */
#include "process/reclaim.h"

#include "base/bits.h"
#include "hardened/waiting.h"
#include "heap/cache_list.h"
#include "heap/flush.h"
#include "heap/heaps.h"
#include "heap/limit.h"
#include "heap/private_heap.h"
#include "heap/supply.h"
#include "heap/sweep.h"
#include "learn/keep_time.h"
#include "os/confine.h"
#include "os/os.h"
#include "policy/policy_table.h"
#include "process/slow_path.h"
#include "slab/superslab_pool.h"
#include "span/big_cache.h"
#include "span/large.h"
#include "span/span_free.h"
#include "span/span_heap.h"
#include "span/span_purge.h"
#include "stats/event_log.h"

/* The tick acts at most so often, and on so much. */
#define TICK_MS 20
#define TICK_SUPERSLABS 8
#define TICK_SPANS 16
/* At most this share of the live large blocks is kept warm for their successors. */
#define RETAIN_SHARE 4

/* A heap is swept so often. */
#define SWEEP_GAP_MS 4
/* The background thread leaves a heap alone that some thread swept so recently, comes so many times
 * in a row, and waits so long to get in. */
#define THREADS_GAP_MS 50
#define BACKGROUND_SWEEPS 64
#define BACKGROUND_PATIENCE_MS 4

/* Interval of readings of the process's times, once some memory was returned. */
#define BUSY_MS 250

/* While the soft limit is passed, all heaps are visited so often. */
#define RELIEF_MS 250

static _Atomic uint64_t last_tick_ms;
static _Atomic uint64_t last_relief_ms;
static _Atomic uint64_t last_busy_ms;
static _Atomic uint32_t turn; /* of the heaps */
/* How often memory was short; each thread answers it once, by emptying its bins. */
static _Atomic uint32_t relief_count;

/* After so long free memory goes back. */
static uint64_t decay_now_ms(void)
{
    return hak_policy_read(free_policy) == POLICY_FREE_KEEP ? UINT64_MAX
                                                            : hak_policy_read(decay_ms);
}

/* The warm spans that are kept regardless of age. */
static size_t keep_bytes(void)
{
    size_t keep = 0;
    if (hak_policy_read(free_policy) == POLICY_FREE_ADAPTIVE)
        keep = hak_least(hak_policy_read(retain_bytes), hak_large_held_bytes() / RETAIN_SHARE);
    size_t prewarmed = hak_policy_read(prewarm_bytes);
    if (HAK_LIKELY(prewarmed == 0))
        return keep;
    size_t live = hak_excess(hak_held_bytes(), hak_limit_warm_bytes());
    return hak_most(keep, hak_excess(prewarmed, live));
}

/* How much of a tick's work a free policy lets it do. */
static uint32_t budget(uint32_t bit_by_bit)
{
    return hak_policy_read(free_policy) == POLICY_FREE_BATCH ? UINT32_MAX : bit_by_bit;
}

/* Purges the swept pages outside of the heap; its slabs rejoin it at once unless it is busy. */
static size_t purge_swept(struct heap *heap, const struct swept *swept)
{
    size_t bytes = hak_heap_purge_swept(heap, swept);
    hak_lock_give(&hak_region.purge_lock);
    if (swept->count == 0 || !hak_heap_try_enter(heap))
        return bytes;
    hak_heap_collect(heap);
    hak_heap_leave(heap);
    return bytes;
}

/* Sweeps a heap that the caller is in, and leaves it; not while another thread purges. */
static size_t sweep_and_leave(struct heap *heap, uint64_t now, uint64_t decay)
{
    struct swept swept;
    hak_store_relaxed(&heap->sweep_visit_ms, now);
    /* Where granules that went back were wanted again, so are pages of slabs. */
    uint64_t pass_ms = hak_limit_is_passed() ? decay : hak_most(decay, hak_pool_keep_ms());
    bool may_purge = hak_lock_try(&hak_region.purge_lock);
    if (may_purge)
        hak_heap_sweep(heap, now, pass_ms, &swept);
    hak_heap_leave(heap);
    size_t bytes = may_purge ? purge_swept(heap, &swept) : 0;
    if (bytes > 0)
        hak_event_log(sweep, bytes);
    return bytes;
}

/* Of the cache of the heap, which is held: what is old, and what was recent at many visits and is
 * too much by now. */
static void drop_old_spans(struct heap *heap, uint64_t before_ms)
{
    size_t most = hak_most(hak_flush_spans_most(), HAK_SPAN_CACHE_BYTES_MOST);
    hak_large_drop_cached(&heap->spans, before_ms, most, UINT32_MAX);
}

/* Purges old free memory of the thread's nearest heap. */
static void maintain_heap(uint64_t now, uint64_t decay)
{
    struct heap *heap = hak_heap_near();
    if (heap == NULL || decay > now || !hak_heap_try_enter(heap))
        return;
    drop_old_spans(heap, now - decay);
    if (now - hak_load_relaxed(&heap->sweep_visit_ms) >= SWEEP_GAP_MS)
        sweep_and_leave(heap, now, decay);
    else
        hak_heap_leave(heap);
}

void hak_reclaim_cache(struct cache *cache)
{
    uint64_t now = hak_os_clock_ms();
    uint64_t decay = decay_now_ms();
    if (HAK_UNLIKELY(hak_limit_is_passed()))
        decay = hak_least(decay, RELIEF_MS); /* whatever the user chose */
    if (cache == NULL || hak_cache_at_rest() != cache)
        return;
    hak_cache_begin(cache);
    hak_cache_shrink_quiet(cache, now);
    uint32_t relief = hak_load_relaxed(&relief_count);
    if (HAK_UNLIKELY(hak_load_relaxed(&cache->relief_count) != relief)) {
        hak_store_relaxed(&cache->relief_count, relief);
        hak_cache_flush_all(cache);
    }
    maintain_heap(now, decay);
    hak_cache_end(cache);
}

/* One heap in turn, which its threads may have left: frees that came while it was busy, spans and
 * pages that grew old. */
static void look_after_one(uint64_t now, uint64_t decay)
{
    uint32_t count = hak_heap_count();
    struct heap *heap = count == 0 ? NULL : hak_heap_at(hak_fetch_add_relaxed(&turn, 1) % count);
    if (heap == NULL || now - hak_load_relaxed(&heap->sweep_visit_ms) < THREADS_GAP_MS ||
        !hak_heap_try_enter(heap))
        return;
    hak_heap_collect(heap);
    drop_old_spans(heap, now - decay);
    sweep_and_leave(heap, now, decay);
}

/* Returns memory that was free for longer than `decay`. */
static size_t purge_aged(uint64_t now, uint64_t decay)
{
    uint64_t before = now - decay;
    hak_caches_drain(before, NULL);
    hak_private_drain_some();
    size_t keep = keep_bytes();
    if (!hak_lock_try(&hak_region.purge_lock))
        return 0; /* somebody is at it */
    size_t bytes = 0;
    uint64_t granules_before = hak_excess(now, hak_pool_keep_ms());
    if (hak_pool_has_warm(granules_before))
        bytes += hak_pool_purge(granules_before, budget(TICK_SUPERSLABS));
    hak_supply_trim();
    uint64_t spans_before = hak_excess(now, hak_big_cache_keep_ms());
    if (hak_span_oldest_ms() <= spans_before && hak_span_warm_bytes() > keep)
        bytes += hak_span_purge(spans_before, keep, budget(TICK_SPANS));
    hak_lock_give(&hak_region.purge_lock);
    if (bytes > 0)
        hak_event_log(purge, bytes);
    return bytes;
}

/* Some goes in a row. */
static size_t sweep_for_threads(struct heap *heap, uint64_t now, uint64_t decay, bool *is_done)
{
    size_t bytes = 0;
    for (int i = 0; i < BACKGROUND_SWEEPS && (i == 0 || !hak_heap_is_swept(heap)); i++) {
        if (!hak_heap_enter_within(heap, BACKGROUND_PATIENCE_MS))
            return bytes;
        hak_heap_collect(heap);
        drop_old_spans(heap, now - decay);
        bytes += sweep_and_leave(heap, now, decay);
    }
    *is_done = *is_done && hak_heap_is_swept(heap);
    hak_store_relaxed(&heap->sweep_visit_ms, now - THREADS_GAP_MS);
    return bytes;
}

/* Sweeps heaps that no thread has swept lately. */
static size_t sweep_heaps(uint64_t now, uint64_t decay, bool *is_done)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < hak_heap_count(); i++) {
        struct heap *heap = hak_heap_at(i);
        if (now - hak_load_relaxed(&heap->sweep_visit_ms) >= THREADS_GAP_MS)
            bytes += sweep_for_threads(heap, now, decay, is_done);
    }
    return bytes;
}

/* Returns cached and withheld blocks to their slabs, except those in caches of threads that run
 * with one, and in caches of processors that were in use after `since_ms`. */
static void drain_all(uint64_t since_ms)
{
    hak_caches_drain(UINT64_MAX, hak_waiting_drain);
    hak_caches_drain_idle(since_ms);
    hak_private_drain_all();
}

/* All free memory, after a purge in progress, which holds some of it until it ends. */
static size_t purge_free(size_t keep_bytes)
{
    hak_lock_take(&hak_region.purge_lock);
    size_t bytes = hak_pool_purge(UINT64_MAX, UINT32_MAX);
    hak_supply_trim();
    bytes += hak_span_purge(UINT64_MAX, keep_bytes, UINT32_MAX);
    hak_span_strip();
    hak_lock_give(&hak_region.purge_lock);
    hak_event_log(trim, bytes);
    return bytes;
}

static void tidy(struct heap *heap, enum heap_access access, void *context)
{
    (void)context;
    if (access == HEAP_ENTERED)
        hak_heap_tidy(heap);
}

void hak_reclaim_empty_heaps(void)
{
    hak_heaps_visit(tidy, NULL);
}

size_t hak_reclaim_purge_all(void)
{
    drain_all(UINT64_MAX);
    hak_reclaim_empty_heaps();
    return purge_free(0);
}

/* Enters the heap as the one that purges. Another purge is waited for outside of the heap. */
static bool enter_to_purge(struct heap *heap)
{
    while (hak_heap_enter_within(heap, BACKGROUND_PATIENCE_MS)) {
        if (hak_lock_try(&hak_region.purge_lock))
            return true;
        hak_heap_leave(heap);
        hak_lock_take(&hak_region.purge_lock);
        hak_lock_give(&hak_region.purge_lock);
    }
    return false;
}

/* The dead pages of one heap. */
static size_t sweep_one_whole(struct heap *heap)
{
    size_t bytes = 0;
    struct whole_sweep progress = {0};
    bool is_over = false;
    while (!is_over && enter_to_purge(heap)) {
        struct swept swept;
        is_over = hak_heap_sweep_whole(heap, &progress, &swept);
        hak_heap_leave(heap);
        bytes += purge_swept(heap, &swept);
    }
    if (bytes > 0)
        hak_event_log(sweep, bytes);
    return bytes;
}

static size_t sweep_whole(void)
{
    size_t bytes = hak_private_sweep_all();
    for (uint32_t i = 0; i < hak_heap_count(); i++)
        bytes += sweep_one_whole(hak_heap_at(i));
    return bytes;
}

/* Collects remotely freed blocks into their slabs, and returns empty slabs to the pool. */
static void gather(void)
{
    struct cache *own = hak_cache_at_rest();
    if (own != NULL) {
        hak_cache_begin(own);
        hak_waiting_drain(own);
        hak_cache_flush_all(own);
        hak_cache_end(own);
    }
    drain_all(UINT64_MAX);
    hak_reclaim_empty_heaps();
}

size_t hak_reclaim_trim(size_t keep_bytes)
{
    hak_copy_look();
    if (HAK_UNLIKELY(hak_lock_is_abandoned()))
        hak_thread_mend();
    if (HAK_UNLIKELY(hak_lock_is_inside()))
        return 0;
    gather();
    size_t bytes = hak_thread_is_outside() ? sweep_whole() : 0;
    return bytes + purge_free(keep_bytes);
}

size_t hak_reclaim_relieve(void)
{
    hak_fetch_add_relaxed(&relief_count, 1);
    return hak_reclaim_trim(0);
}

/* Spares memory that the program may still need: slabs in use keep their pages. */
static size_t relieve_gently(uint64_t now)
{
    bool is_done = true;
    if (!hak_thread_is_outside())
        return 0;
    hak_fetch_add_relaxed(&relief_count, 1);
    size_t bytes = sweep_heaps(now, 0, &is_done);
    gather();
    return bytes + purge_free(0);
}

/* While more is live than the soft limit allows, nothing free is kept but in the caches of busy
 * processors; these and the heaps are visited now and then. */
static size_t relieve_at_times(uint64_t now)
{
    uint64_t last = hak_load_relaxed(&last_relief_ms);
    /* relaxed: the exchange only elects one thread */
    if (hak_excess(now, last) >= RELIEF_MS && hak_cas_relaxed(&last_relief_ms, &last, now))
        return relieve_gently(now);
    drain_all(now - RELIEF_MS);
    return purge_free(0);
}

/* For keep times (learn/keep_time.h); a race may ask twice. */
static void ask_busy(uint64_t now)
{
    if (HAK_LIKELY(!hak_load_relaxed(&hak_keep_asks)) ||
        now - hak_load_relaxed(&last_busy_ms) < BUSY_MS || !hak_os_ask_begin())
        return;
    hak_store_relaxed(&last_busy_ms, now);
    hak_store_relaxed(&hak_keep_busy_ns, hak_os_busy_ns());
    hak_os_ask_end();
}

bool hak_reclaim_tick(void)
{
    uint64_t now = hak_os_clock_ms();
    uint64_t last = hak_load_relaxed(&last_tick_ms);
    /* relaxed: the exchange only elects one thread */
    if (now - last < TICK_MS || !hak_cas_relaxed(&last_tick_ms, &last, now))
        return false;
    ask_busy(now);
    uint64_t decay = decay_now_ms();
    if (HAK_UNLIKELY(hak_limit_is_passed())) {
        relieve_at_times(now);
    } else if (decay <= now) {
        look_after_one(now, decay);
        purge_aged(now, decay);
    }
    return true;
}

size_t hak_reclaim_visit(bool *is_done)
{
    uint64_t now = hak_os_clock_ms();
    uint64_t decay = decay_now_ms();
    *is_done = true;
    if (HAK_UNLIKELY(hak_limit_is_passed()))
        return relieve_at_times(now);
    if (decay > now)
        return 0;
    hak_caches_drain_idle(now - decay);
    return purge_aged(now, decay) + sweep_heaps(now, decay, is_done);
}
