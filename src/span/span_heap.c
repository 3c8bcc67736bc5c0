/* SPDX-License-Identifier: MIT */
#include "span/span_heap.h"

#include "base/bits.h"
#include "base/check.h"
#include "os/node.h"
#include "os/os.h"
#include "region/huge_wish.h"
#include "region/meta.h"
#include "region/tag_map.h"
#include "span/big_cache.h"
#include "span/span_free.h"
#include "span/span_move.h"
#include "span/span_purge.h"
#include "stats/counters.h"

static _Atomic size_t lost_bytes;
static _Atomic size_t known_bytes;

/* Granules without a record, in superslabs; and their peaks in intervals as long as free memory is
 * kept: this one, and the one before. */
static struct {
    _Atomic size_t bytes, peak_bytes, last_peak_bytes;
    _Atomic uint64_t since_ms; /* when this interval began */
} detached;

/* relaxed, all of it: a race loses a little of a peak, once */
static void begin_interval_when_due(void)
{
    uint64_t since_ms = hak_load_relaxed(&detached.since_ms);
    uint64_t past_ms = hak_excess(hak_os_clock_ms(), since_ms), keep_ms = hak_big_cache_keep_ms();
    if (HAK_LIKELY(past_ms < keep_ms))
        return;
    size_t now = hak_load_relaxed(&detached.bytes);
    bool is_next = past_ms / 2 < keep_ms; /* no whole interval went by without a look */
    hak_store_relaxed(&detached.last_peak_bytes,
                      is_next ? hak_load_relaxed(&detached.peak_bytes) : now);
    hak_store_relaxed(&detached.peak_bytes, now);
    hak_store_relaxed(&detached.since_ms, since_ms + past_ms);
}

static void note_detached(uint32_t count)
{
    begin_interval_when_due();
    size_t bytes = (size_t)count << HAK_GRANULE_SHIFT;
    size_t now = hak_fetch_add_relaxed(&detached.bytes, bytes) + bytes;
    if (now > hak_load_relaxed(&detached.peak_bytes))
        hak_store_relaxed(&detached.peak_bytes, now);
}

static void note_attached(uint32_t count)
{
    begin_interval_when_due();
    hak_fetch_sub_relaxed(&detached.bytes, (size_t)count << HAK_GRANULE_SHIFT);
}

/* Processes below this size do not ask for the machine's memory nodes. */
#define NODES_FROM_BYTES (64 * HAK_MIB)

/* The NUMA node from which the calling thread's first touch takes memory. */
static uint32_t own_node(void)
{
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    return HAK_LIKELY(committed < NODES_FROM_BYTES) ? 0 : hak_os_node();
}

static struct span *take_from(struct span_bins *bins, struct span_fit fit)
{
    struct span *span = hak_span_bins_find(bins, fit);
    return span == NULL ? NULL : hak_span_free_carve(span, hak_span_place(span, fit), fit.count);
}

/* As long as wished in the places of such blocks: what less would leave is hardly resident. */
static struct span *take_warm(struct span_fit fit, uint32_t wished_count, uint32_t node)
{
    struct span *span = hak_span_bins_find(&hak_span_free.warm[node], fit);
    if (span == NULL)
        return NULL;
    if (span->lean_count == wished_count)
        fit.count = wished_count;
    return hak_span_free_carve(span, hak_span_place(span, fit), fit.count);
}

/* Warm memory of the node, then memory that becomes the node's by being touched. */
static struct span *take_near(struct span_fit fit, uint32_t wished_count, uint32_t node)
{
    struct span *span = take_warm(fit, wished_count, node);
    if (span == NULL && fit.alignment == 1)
        span = hak_span_free_take_mixed(fit.count, node);
    if (span != NULL)
        return span;
    fit.count = wished_count;
    span = take_from(&hak_span_free.clean, fit);
    if (span != NULL)
        span->node = node;
    return span;
}

/* Warm memory of other nodes: rather than more memory. */
static struct span *take_far(struct span_fit fit, uint32_t own_node)
{
    struct span *span = NULL;
    uint32_t nodes = hak_span_free.warm_nodes & ~(1u << own_node);
    for (; span == NULL && nodes != 0; nodes &= nodes - 1)
        span = take_from(&hak_span_free.warm[hak_bit_lowest(nodes)], fit);
    if (span != NULL)
        hak_counter_add(&hak_stat_globals.spans_far, 1);
    return span;
}

/* Tells the big cache how much of a served span was warm. */
static void note_served(const struct span *span, uint64_t now_ms, size_t warm_bytes)
{
    size_t left_bytes = hak_load_relaxed(&hak_span_free.warm_bytes);
    struct big_serve serve = {now_ms, span->freed_ms, warm_bytes, span->count,
                              (uint32_t)((warm_bytes - left_bytes) >> HAK_GRANULE_SHIFT)};
    hak_big_cache_served(&serve);
}

/* Lengthens the span by clean memory, if that is what follows it. */
static void extend_clean(struct span *span, uint32_t count)
{
    uint32_t more = count - span->count, end = span->first + span->count;
    struct span *behind = hak_span_free_at(end);
    if (behind == NULL || behind->state != SPAN_CLEAN || behind->count < more)
        return;
    struct span *taken = hak_span_free_carve(behind, end, more);
    if (taken == NULL)
        return;
    span->count = count;
    hak_span_free_spare(taken);
}

static struct span *take_free(struct span_fit fit, uint32_t wished_count, bool *is_zero)
{
    uint64_t now_ms = hak_os_clock_ms();
    uint32_t node = own_node();
    hak_span_lock();
    hak_span_free_start();
    size_t warm_bytes = hak_load_relaxed(&hak_span_free.warm_bytes);
    struct span *span = take_near(fit, wished_count, node);
    if (span == NULL)
        span = take_far(fit, node);
    if (span != NULL) {
        note_served(span, now_ms, warm_bytes);
        if (HAK_UNLIKELY(span->count < wished_count))
            extend_clean(span, wished_count);
        span->lean_count = span->count > fit.count ? span->count : 0;
        *is_zero = span->state == SPAN_CLEAN;
        span->state = SPAN_USED;
    }
    hak_span_unlock();
    return span;
}

static void give_as(struct span *span, enum span_state state)
{
    hak_assert(!span->is_divided);
    uint64_t now_ms = hak_os_clock_ms();
    hak_span_lock();
    hak_store_relaxed(&span->user, NULL);
    span->state = (uint32_t)state;
    span->freed_ms = now_ms;
    hak_span_free_insert(span);
    hak_span_unlock();
}

/* Takes free addresses and maps them again. */
static struct span *take_bare(struct span_fit fit, bool *is_zero)
{
    *is_zero = true;
    for (;;) {
        hak_span_lock();
        hak_span_free_start();
        struct span *span = take_from(&hak_span_free.bare, fit);
        if (span != NULL)
            span->state = SPAN_USED;
        hak_span_unlock();
        if (span == NULL)
            return NULL;
        span->node = own_node();
        switch (hak_region_map(hak_span_granules(span))) {
        case OS_MAPPED:
            return span;
        case OS_MAP_TAKEN:
            hak_span_lose(span);
            break;
        case OS_MAP_REFUSED:
            give_as(span, SPAN_BARE);
            return NULL;
        }
    }
}

/* Adds fresh granules to the clean spans; false when the window or the kernel has no more. */
static bool grow(uint32_t count, uint32_t alignment)
{
    size_t wished = (size_t)count + (alignment > HAK_SUPERSLAB_GRANULES ? alignment - 1 : 0);
    struct span *span =
        hak_meta_pool_take(&hak_span_pool, sizeof *span); /* first: it may be refused */
    if (span == NULL)
        return false;
    struct granule_range range = hak_region_grow(wished);
    if (range.count == 0) {
        hak_meta_pool_give(&hak_span_pool, span);
        return false;
    }
    span->first = range.first;
    span->count = range.count;
    span->state = SPAN_CLEAN;
    span->node = 0;
    span->freed_ms = 0;
    span->piece_count = 0;
    span->is_divided = false;
    span->lean_count = 0;
    hak_span_lock();
    /* Known before it is clean: partner is the order in hak_held_bytes. */
    hak_counter_add(&known_bytes, (size_t)range.count << HAK_GRANULE_SHIFT);
    hak_span_free_insert(span);
    hak_span_unlock();
    return true;
}

struct granule_range hak_span_fresh_superslab(void)
{
    struct granule_range range = hak_region_grow_by_superslab();
    hak_span_lock();
    hak_span_free_start(); /* the superslab may be the first span that is given back */
    hak_counter_add(&known_bytes, (size_t)range.count << HAK_GRANULE_SHIFT);
    hak_span_unlock();
    note_detached(range.count);
    return range;
}

struct span *hak_span_take(uint32_t count, uint32_t alignment, bool *is_zero)
{
    return hak_span_take_wished(count, count, alignment, is_zero);
}

struct span *hak_span_take_wished(uint32_t count, uint32_t wished_count, uint32_t alignment,
                                  bool *is_zero)
{
    struct span_fit fit = {count, alignment, 0}, wished = {wished_count, alignment, 0};
    for (int round = 0; round < 3; round++) {
        struct span *span = take_free(fit, wished_count, is_zero);
        if (span == NULL)
            span = take_bare(wished, is_zero);
        if (span != NULL)
            return span;
        if (grow(wished_count, alignment))
            continue;
        /* Nothing fits and the window cannot grow: wait for purges in progress, and unmap all free
         * memory, which merges its spans and may make room elsewhere. */
        hak_lock_take(&hak_region.purge_lock);
        size_t purged_bytes = hak_span_purge(UINT64_MAX, 0, UINT32_MAX) + hak_span_strip();
        hak_lock_give(&hak_region.purge_lock);
        if (purged_bytes == 0)
            break;
    }
    return take_free(fit, wished_count, is_zero);
}

/* Takes the fit out of clean memory that leaves as much again free behind it. */
static struct span *take_with_room(struct span_fit fit)
{
    struct span_fit roomy = {2 * fit.count, fit.alignment, fit.phase};
    hak_span_lock();
    hak_span_free_start();
    struct span *span = hak_span_bins_find(&hak_span_free.clean, roomy);
    if (span != NULL)
        span = hak_span_free_carve(span, hak_span_place(span, fit), fit.count);
    if (span != NULL)
        span->state = SPAN_USED;
    hak_span_unlock();
    return span;
}

struct span *hak_span_take_roomy(struct span_fit fit)
{
    struct span *span = take_with_room(fit);
    if (span == NULL && grow(2 * fit.count + fit.alignment - 1, 1))
        span = take_with_room(fit);
    return span;
}

void hak_span_give(struct span *span)
{
    hak_assert(span->state == SPAN_USED);
    if (HAK_UNLIKELY(span->piece_count != 0))
        hak_span_give_clean(span);
    else if (HAK_UNLIKELY(hak_span_is_too_much(span)))
        hak_span_give_purged(span);
    else
        give_as(span, SPAN_WARM);
}

void hak_span_give_clean(struct span *span)
{
    hak_assert(span->state == SPAN_USED);
    hak_huge_refuse(hak_span_granules(span));
    if (span->piece_count != 0 && !hak_span_pieces_renew(span))
        hak_span_lose(span);
    else if (HAK_UNLIKELY(hak_span_is_too_much(span)))
        hak_span_give_purged(span);
    else
        give_as(span, SPAN_CLEAN);
}

void hak_span_lose(struct span *span)
{
    hak_span_pieces_forget(span);
    hak_fetch_add_relaxed(&lost_bytes, hak_span_bytes(span));
    hak_tag_write(span->first, span->count, HAK_TAG_HOLE);
    hak_meta_pool_give(&hak_span_pool, span);
}

void hak_span_give_many(struct span **spans, uint32_t count)
{
    if (HAK_UNLIKELY(hak_region_most_bytes() != SIZE_MAX)) {
        for (uint32_t i = 0; i < count; i++)
            hak_span_give(spans[i]); /* one by one: addresses may have to go back */
        return;
    }
    hak_span_lock();
    hak_span_free_start();
    for (uint32_t i = 0; i < count; i++) {
        hak_assert(spans[i]->state == SPAN_USED && spans[i]->piece_count == 0);
        spans[i]->state = SPAN_WARM;
        hak_span_free_insert(spans[i]);
    }
    hak_span_unlock();
}

bool hak_span_give_purged(struct span *span)
{
    if (span->piece_count != 0) {
        hak_span_give_clean(span);
        return false;
    }
    enum span_state state = hak_span_discard(span);
    give_as(span, state);
    return state != SPAN_WARM;
}

/* Extends the span by free memory behind it. If that is too little but the window ends there,
 * *missing is the number of granules by which the window would have to grow; else it is 0. */
static bool extend_locked(struct span *span, uint32_t count, uint32_t *missing)
{
    uint32_t more = count - span->count;
    uint32_t end = span->first + span->count;
    struct span *behind = hak_span_free_at(end);
    *missing = 0;
    if (behind != NULL && behind->count >= more && behind->state != SPAN_BARE) {
        struct span *taken = hak_span_free_carve(behind, end, more);
        if (taken == NULL)
            return false;
        span->count += more;
        span->lean_count = 0;
        hak_span_free_spare(taken);
        return true;
    }
    uint32_t room = behind == NULL || behind->state != SPAN_CLEAN ? 0 : behind->count;
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    if ((size_t)end + room == committed)
        *missing = more - room;
    return false;
}

bool hak_span_extend(struct span *span, uint32_t count)
{
    uint32_t missing;
    hak_span_lock();
    bool is_done = extend_locked(span, count, &missing);
    hak_span_unlock();
    if (is_done || missing == 0 || !grow(missing, 1))
        return is_done;
    hak_span_lock();
    is_done = extend_locked(span, count, &missing);
    hak_span_unlock();
    return is_done;
}

void hak_span_cut(struct span *span, uint32_t count)
{
    span->lean_count = 0;
    struct span *tail = hak_span_record_like(span, span->first + count, span->count - count);
    if (tail == NULL)
        return;
    hak_span_pieces_cut(span, count, tail);
    span->count = count;
    hak_span_give(tail);
}

size_t hak_span_attached_bytes(void)
{
    begin_interval_when_due();
    size_t peak = hak_most(hak_load_relaxed(&detached.peak_bytes),
                           hak_load_relaxed(&detached.last_peak_bytes));
    return hak_excess(peak, hak_load_relaxed(&detached.bytes));
}

struct granule_range hak_span_detach(struct span *span)
{
    struct granule_range range = hak_span_granules(span);
    note_detached(span->count);
    hak_meta_pool_give(&hak_span_pool, span);
    return range;
}

struct span *hak_span_attach(struct granule_range range)
{
    struct span *span = hak_meta_pool_take(&hak_span_pool, sizeof *span);
    if (span != NULL) {
        span->first = range.first;
        span->count = range.count;
        span->state = SPAN_USED;
        span->node = own_node();
        span->piece_count = 0;
        span->is_divided = false;
        span->lean_count = 0;
        note_attached(range.count);
    }
    return span;
}

size_t hak_span_warm_bytes(void)
{
    return hak_load_relaxed(&hak_span_free.warm_bytes);
}

size_t hak_span_clean_bytes(void)
{
    /* acquire: partner is the release in count_bytes of span/span_free.c */
    return hak_load_acquire(&hak_span_free.clean_bytes);
}

size_t hak_span_known_bytes(void)
{
    return hak_load_relaxed(&known_bytes);
}

size_t hak_span_lost_bytes(void)
{
    return hak_load_relaxed(&lost_bytes);
}

uint64_t hak_span_oldest_ms(void)
{
    uint64_t oldest_ms = hak_load_relaxed(&hak_span_free.oldest_ms);
    return oldest_ms == 0 ? UINT64_MAX : oldest_ms;
}

bool hak_span_heap_is_sound(void)
{
    hak_span_lock();
    hak_span_free_start();
    bool is_sound = hak_span_free_is_sound();
    hak_span_unlock();
    return is_sound;
}

void hak_span_mend(void)
{
    if (!hak_lock_is_left(&hak_span_lock_word))
        return;
    size_t free_bytes = hak_span_warm_bytes() + hak_span_clean_bytes();
    /* What was being added may be known and not yet free: it counts as used from now on. */
    hak_store_relaxed(&known_bytes, hak_excess(hak_load_relaxed(&known_bytes), free_bytes));
    hak_span_free_renew();
    hak_span_unlock();
}
