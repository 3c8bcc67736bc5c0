/* SPDX-License-Identifier: MIT */
#include "span/span_heap.h"

#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"
#include "region/huge_wish.h"
#include "region/meta.h"
#include "region/tag_map.h"
#include "span/big_cache.h"
#include "span/detached.h"
#include "span/span_free.h"
#include "span/span_move.h"
#include "span/span_purge.h"
#include "span/span_take.h"
#include "stats/counters.h"

static _Atomic size_t lost_bytes;
static _Atomic size_t known_bytes;

/* The set that a span which becomes free is of from now on: none has others while they pause. */
static uint32_t choose_set(struct span *span, enum span_state state)
{
    if (HAK_UNLIKELY(span->set != 0) && (state != SPAN_WARM || !hak_span_has_sets()))
        span->set = 0;
    return span->set;
}

static void give_as(struct span *span, enum span_state state)
{
    hak_assert(!span->is_divided);
    uint64_t now_ms = hak_os_clock_ms();
    uint32_t set = choose_set(span, state);
    hak_span_lock_set(set);
    hak_store_relaxed(&span->user, NULL);
    span->state = (uint32_t)state;
    span->freed_ms = now_ms;
    hak_span_free_insert(span);
    hak_span_unlock_set(set);
}

/* Takes free addresses and maps them again. */
static struct span *take_bare(struct span_fit fit, bool *is_zero)
{
    *is_zero = true;
    while (hak_load_relaxed(&hak_span_free.bare_bytes) != 0) {
        hak_span_lock();
        hak_span_free_start(0);
        struct span *span = hak_span_free_take(&hak_span_free.bare, fit);
        if (span != NULL)
            span->state = SPAN_USED;
        hak_span_unlock();
        if (span == NULL)
            return NULL;
        span->node = hak_span_own_node();
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
    return NULL;
}

/* Adds fresh granules to the clean spans; false when the window or the kernel has no more. */
static bool grow(uint32_t count, uint32_t alignment)
{
    size_t wished = (size_t)count + (alignment > HAK_SUPERSLAB_GRANULES ? alignment - 1 : 0);
    struct span *span =
        hak_meta_pool_take(&hak_span_free.records, sizeof *span); /* first: it may be refused */
    if (span == NULL)
        return false;
    struct granule_range range = hak_region_grow(wished);
    if (range.count == 0) {
        hak_meta_pool_give(&hak_span_free.records, span);
        return false;
    }
    span->first = range.first;
    span->count = range.count;
    span->state = SPAN_CLEAN;
    span->node = 0;
    span->set = 0;
    span->freed_ms = 0;
    span->piece_count = 0;
    span->is_divided = false;
    span->lean_count = 0;
    hak_span_lock();
    /* Known before it is clean: partner is the order in hak_held_bytes. */
    hak_fetch_add_relaxed(&known_bytes, (size_t)range.count << HAK_GRANULE_SHIFT);
    hak_span_free_insert(span);
    hak_span_unlock();
    return true;
}

struct granule_range hak_span_fresh_superslab(void)
{
    struct granule_range range = hak_region_grow_by_superslab();
    hak_span_lock();
    hak_span_free_start(0); /* the superslab may be the first span that is given back */
    hak_fetch_add_relaxed(&known_bytes, (size_t)range.count << HAK_GRANULE_SHIFT);
    hak_span_unlock();
    hak_note_detached(range.count);
    return range;
}

struct span *hak_span_take(uint32_t count, uint32_t alignment, bool *is_zero)
{
    return hak_span_take_wished((struct span_fit){count, alignment, 0}, count, 0, is_zero);
}

/* What is purged, or joins, may go to another thread. */
#define ROUNDS 4

struct span *hak_span_take_wished(struct span_fit fit, uint32_t wished_count, uint32_t set,
                                  bool *is_zero)
{
    struct span_fit wished = {wished_count, fit.alignment, fit.phase};
    if (fit.count > HAK_SPAN_SET_GRANULES_MOST)
        set = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct span *span = hak_span_take_free(fit, wished_count, set, is_zero);
        if (span == NULL)
            span = take_bare(wished, is_zero);
        if (span != NULL)
            return span;
        if (grow(wished_count, fit.alignment) || (round == 0 && hak_span_join_sets()))
            continue;
        /* Nothing fits and the window cannot grow: wait for purges in progress, and unmap all free
         * memory, which merges its spans and may make room elsewhere. */
        hak_lock_take(&hak_region.purge_lock);
        size_t purged_bytes = hak_span_purge(UINT64_MAX, 0, UINT32_MAX) + hak_span_strip();
        hak_lock_give(&hak_region.purge_lock);
        if (purged_bytes == 0)
            break;
    }
    hak_span_join_sets();
    return hak_span_take_free(fit, wished_count, set, is_zero);
}

/* Takes the fit out of clean memory that leaves as much again free behind it. */
static struct span *take_with_room(struct span_fit fit)
{
    struct span_fit roomy = {2 * fit.count, fit.alignment, fit.phase};
    hak_span_lock();
    hak_span_free_start(0);
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
    hak_meta_pool_give(&hak_span_free.records, span);
}

void hak_span_give_many(struct span **spans, uint32_t count)
{
    if (HAK_UNLIKELY(hak_region_most_bytes() != SIZE_MAX)) {
        for (uint32_t i = 0; i < count; i++)
            hak_span_give(spans[i]); /* one by one: addresses may have to go back */
        return;
    }
    uint32_t set = choose_set(spans[0], SPAN_WARM);
    hak_span_lock_set(set);
    for (uint32_t i = 0; i < count; i++) {
        hak_assert(spans[i]->state == SPAN_USED && spans[i]->piece_count == 0);
        uint32_t own = choose_set(spans[i], SPAN_WARM);
        if (HAK_UNLIKELY(own != set)) {
            hak_span_unlock_set(set);
            hak_span_lock_set(set = own);
        }
        hak_span_free_start(set);
        spans[i]->state = SPAN_WARM;
        hak_span_free_insert(spans[i]);
    }
    hak_span_unlock_set(set);
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

/* Extends the span by what is free behind it in the set, whose lock is held. */
static bool extend_by(struct span *span, uint32_t more, uint32_t set)
{
    struct span *behind = hak_span_free_at((size_t)span->first + span->count, set);
    if (behind == NULL || behind->count < more || behind->state == SPAN_BARE ||
        !hak_span_free_append(span, behind, more))
        return false;
    span->lean_count = 0;
    return true;
}

static bool extend_by_own(struct span *span, uint32_t more)
{
    if (HAK_LIKELY(span->set == 0))
        return false;
    hak_span_lock_set(span->set);
    bool is_done = extend_by(span, more, span->set);
    hak_span_unlock_set(span->set);
    return is_done;
}

/* The same in set 0, or by clean memory. If that is too little but the window ends there, *missing
 * is the number of granules by which the window would have to grow; else it is 0. */
static bool extend_by_common(struct span *span, uint32_t more, uint32_t *missing)
{
    *missing = 0;
    hak_span_lock();
    bool is_done = extend_by(span, more, 0);
    if (!is_done) {
        uint32_t end = span->first + span->count;
        const struct span *behind = hak_span_free_at(end, 0);
        uint32_t room = behind == NULL || behind->state != SPAN_CLEAN ? 0 : behind->count;
        size_t committed = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
        if ((size_t)end + room == committed)
            *missing = more - room;
    }
    hak_span_unlock();
    return is_done;
}

static bool extend(struct span *span, uint32_t more)
{
    uint32_t missing;
    if (extend_by_own(span, more) || extend_by_common(span, more, &missing))
        return true;
    return missing != 0 && grow(missing, 1) && extend_by_common(span, more, &missing);
}

bool hak_span_extend(struct span *span, uint32_t count)
{
    if (!extend(span, count - span->count))
        return false;
    if (count > HAK_SPAN_SET_GRANULES_MOST)
        span->set = 0;
    return true;
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

struct granule_range hak_span_detach(struct span *span)
{
    struct granule_range range = hak_span_granules(span);
    hak_note_detached(span->count);
    hak_meta_pool_give(&hak_span_free.records, span);
    return range;
}

struct span *hak_span_attach(struct granule_range range)
{
    struct span *span = hak_meta_pool_take_reserved(&hak_span_free.records, sizeof *span);
    if (span != NULL) {
        span->first = range.first;
        span->count = range.count;
        span->state = SPAN_USED;
        span->node = hak_span_own_node();
        span->set = 0;
        span->piece_count = 0;
        span->is_divided = false;
        span->lean_count = 0;
        hak_note_attached(range.count);
    }
    return span;
}

size_t hak_span_warm_bytes(void)
{
    return hak_span_free_warm_bytes();
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
    uint32_t set = hak_span_free_oldest_set(UINT64_MAX);
    uint64_t oldest_ms =
        set == HAK_SPAN_SETS ? 0 : hak_load_relaxed(&hak_span_free.sets[set].oldest_ms);
    return oldest_ms == 0 ? UINT64_MAX : oldest_ms; /* it may have gone meanwhile */
}

bool hak_span_heap_is_sound(void)
{
    hak_span_lock_sets();
    hak_span_lock();
    hak_span_free_start(0);
    bool is_sound = hak_span_free_is_sound();
    hak_span_unlock();
    hak_span_unlock_sets();
    return is_sound;
}

/* What was being added may be known and not yet free: it counts as used from now on. */
static void renew(uint32_t set)
{
    size_t free_bytes = hak_load_relaxed(&hak_span_free.sets[set].warm_bytes);
    if (set == 0)
        free_bytes += hak_span_clean_bytes();
    hak_fetch_sub_relaxed(&known_bytes, hak_least(hak_span_known_bytes(), free_bytes));
    hak_span_free_renew(set);
}

static void mend_set(uint32_t set)
{
    struct hak_lock *lock = &hak_span_locks[set].lock;
    bool is_noted = hak_lock_is_noted(HAK_LOCK_SPAN_SET); /* of this thread, or for no set yet */
    if (!(hak_lock_is_settling() ? hak_lock_is_left(lock) : hak_lock_is_own(lock)))
        return;
    renew(set);
    if (is_noted)
        hak_lock_give_among(lock);
    else
        hak_lock_give(lock);
}

/* The thread may have waited for any of them, or given it and woken nobody yet. */
static void forget_sets(void)
{
    for (uint32_t set = 1; set < HAK_SPAN_SETS; set++)
        hak_lock_give_slow(&hak_span_locks[set].lock);
    hak_lock_end(HAK_LOCK_SPAN_SET);
}

void hak_span_mend(void)
{
    if (hak_lock_is_left(&hak_span_locks[0].lock)) {
        renew(0);
        hak_span_unlock();
    }
    for (uint32_t set = HAK_SPAN_SETS; set-- > 1;)
        mend_set(set);
    if (hak_lock_is_noted(HAK_LOCK_SPAN_SET) && !hak_lock_is_settling())
        forget_sets();
}
