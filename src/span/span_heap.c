/* SPDX-License-Identifier: MIT */
#include "span/span_heap.h"

#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"
#include "region/meta.h"
#include "region/tag_map.h"
#include "span/span_bins.h"
#include "span/span_move.h"

struct span_heap {
    struct hak_lock lock;
    struct span_bins warm;
    struct span_bins clean;
    struct list_link ages;
    _Atomic size_t warm_bytes;
    _Atomic size_t clean_bytes;
    _Atomic uint64_t oldest_ms;
    _Atomic size_t lost_bytes;
    bool is_started;
};
static struct span_heap heap = {.lock = HAK_LOCK_START_WITH(HAK_LOCK_SPAN),
                                .oldest_ms = UINT64_MAX};
static struct meta_pool span_pool;

static void start_once(void)
{
    if (heap.is_started)
        return;
    hak_span_bins_start(&heap.warm);
    hak_span_bins_start(&heap.clean);
    hak_list_start(&heap.ages);
    heap.is_started = true;
}

static struct span_bins *bins_of(const struct span *span)
{
    return span->state == SPAN_WARM ? &heap.warm : &heap.clean;
}

static void note_oldest(void)
{
    struct list_link *oldest = heap.ages.next;
    hak_store_relaxed(&heap.oldest_ms,
                      oldest == &heap.ages
                          ? UINT64_MAX
                          : hak_list_element(oldest, struct span, age_link)->freed_ms);
}

static void write_edges(const struct span *span, void *record)
{
    hak_owner_write(span->first, 1, record);
    hak_owner_write(span->first + span->count - 1, 1, record);
}

/* Puts a span that touches no free span of its state on its bin. A young one goes to the end of the
 * ages, what is left of an old one to their start. */
static void link_free(struct span *span, bool is_young)
{
    size_t bytes = hak_span_bytes(span);
    hak_span_bins_insert(bins_of(span), span);
    write_edges(span, (char *)span + 1);
    if (span->state == SPAN_WARM) {
        if (is_young)
            hak_list_insert_last(&heap.ages, &span->age_link);
        else
            hak_list_insert_first(&heap.ages, &span->age_link);
        hak_counter_add(&heap.warm_bytes, bytes);
        note_oldest();
    } else {
        hak_counter_add(&heap.clean_bytes, bytes);
    }
}

static void unlink_free(struct span *span)
{
    size_t bytes = hak_span_bytes(span);
    hak_span_bins_remove(bins_of(span), span);
    write_edges(span, NULL);
    if (span->state == SPAN_WARM) {
        hak_list_remove(&span->age_link);
        hak_counter_add(&heap.warm_bytes, -bytes);
        note_oldest();
    } else {
        hak_counter_add(&heap.clean_bytes, -bytes);
    }
}

/* The free span that has an edge at `granule`, if any. */
static struct span *free_span_at(size_t granule)
{
    size_t granules = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    uintptr_t record = granule < granules ? (uintptr_t)hak_owner_read(granule) : 0;
    return record & 1 ? (struct span *)(record - 1) : NULL;
}

/* Makes `span` free, joined with its free neighbours of the same state. */
static void insert_free(struct span *span, bool is_young)
{
    struct span *before = span->first == 0 ? NULL : free_span_at(span->first - 1);
    struct span *behind = free_span_at((size_t)span->first + span->count);
    struct span *neighbours[2] = {before, behind};
    for (int i = 0; i < 2; i++) {
        struct span *other = neighbours[i];
        if (other == NULL || other->state != span->state)
            continue;
        unlink_free(other);
        if (other->count > span->count) /* the larger part says how old the whole is */
            span->freed_ms = other->freed_ms;
        span->first = (uint32_t)hak_least(span->first, other->first);
        span->count += other->count;
        hak_meta_pool_give(&span_pool, other);
    }
    link_free(span, is_young);
}

/* A record for the granules [first, first + count), in the state and age of `like`. */
static struct span *record_like(const struct span *like, uint32_t first, uint32_t count)
{
    struct span *span = hak_meta_pool_take(&span_pool, sizeof *span);
    if (span == NULL)
        return NULL;
    span->first = first;
    span->count = count;
    span->state = like->state;
    span->freed_ms = like->freed_ms;
    span->piece_count = 0;
    return span;
}

/* Takes [first, first + count) out of the free span; what is left on both sides stays free. False,
 * and nothing has changed, when no record can be had for what is left. */
static bool carve(struct span *span, uint32_t first, uint32_t count)
{
    uint32_t head = first - span->first;
    uint32_t tail = span->count - head - count;
    struct span *before = head > 0 ? record_like(span, span->first, head) : NULL;
    struct span *behind = tail > 0 ? record_like(span, first + count, tail) : NULL;
    if ((head > 0 && before == NULL) || (tail > 0 && behind == NULL)) {
        if (before != NULL)
            hak_meta_pool_give(&span_pool, before);
        if (behind != NULL)
            hak_meta_pool_give(&span_pool, behind);
        return false;
    }
    unlink_free(span);
    span->first = first;
    span->count = count;
    if (before != NULL)
        link_free(before, false);
    if (behind != NULL)
        link_free(behind, false);
    return true;
}

/* A clean span from which `count` granules are about to be taken: if a warm one ends where it
 * begins, takes that and only what is missing, so that resident memory is used before untouched
 * memory. Returns the joined span, in state WARM; NULL: there is none, or no memory for a
 * record. */
static struct span *take_across(struct span *clean, uint32_t count)
{
    struct span *warm = clean->first == 0 ? NULL : free_span_at(clean->first - 1);
    if (warm == NULL || warm->state != SPAN_WARM || warm->count >= count ||
        !carve(clean, clean->first, count - warm->count))
        return NULL;
    unlink_free(warm);
    warm->count = count;
    hak_meta_pool_give(&span_pool, clean);
    return warm;
}

static struct span *take_clean(struct span_fit fit)
{
    struct span *span = hak_span_bins_find(&heap.clean, fit);
    if (span == NULL)
        return NULL;
    struct span *joined = fit.alignment == 1 ? take_across(span, fit.count) : NULL;
    if (joined != NULL)
        return joined;
    return carve(span, hak_span_place(span, fit), fit.count) ? span : NULL;
}

static struct span *take_free(struct span_fit fit, bool *is_zero)
{
    hak_lock_take(&heap.lock);
    start_once();
    struct span *span = hak_span_bins_find(&heap.warm, fit);
    if (span == NULL)
        span = take_clean(fit);
    else if (!carve(span, hak_span_place(span, fit), fit.count))
        span = NULL;
    if (span != NULL) {
        *is_zero = span->state == SPAN_CLEAN;
        span->state = SPAN_USED;
    }
    hak_lock_give(&heap.lock);
    return span;
}

/* Adds fresh granules to the clean spans; false when the window or the kernel has no more. */
static bool grow(uint32_t count, uint32_t alignment)
{
    size_t wished = (size_t)count + (alignment > HAK_SUPERSLAB_GRANULES ? alignment - 1 : 0);
    struct span *span = hak_meta_pool_take(&span_pool, sizeof *span); /* first: it may be refused */
    if (span == NULL)
        return false;
    struct granule_range range = hak_region_grow(wished);
    if (range.count == 0) {
        hak_meta_pool_give(&span_pool, span);
        return false;
    }
    span->first = range.first;
    span->count = range.count;
    span->state = SPAN_CLEAN;
    span->freed_ms = 0;
    span->piece_count = 0;
    hak_lock_take(&heap.lock);
    insert_free(span, true);
    hak_lock_give(&heap.lock);
    return true;
}

struct span *hak_span_take(uint32_t count, uint32_t alignment, bool *is_zero)
{
    struct span_fit fit = {count, alignment, 0};
    for (int round = 0; round < 3; round++) {
        struct span *span = take_free(fit, is_zero);
        if (span != NULL)
            return span;
        if (grow(count, alignment))
            continue;
        /* Nothing fits and nothing can be added: joining warm with clean spans may make room. */
        if (hak_span_purge(UINT64_MAX, 0, UINT32_MAX) == 0)
            break;
    }
    return take_free(fit, is_zero);
}

/* Takes the fit out of clean memory that leaves as much again free behind it. */
static struct span *take_with_room(struct span_fit fit)
{
    struct span_fit roomy = {2 * fit.count, fit.alignment, fit.phase};
    hak_lock_take(&heap.lock);
    start_once();
    struct span *span = hak_span_bins_find(&heap.clean, roomy);
    if (span != NULL && !carve(span, hak_span_place(span, fit), fit.count))
        span = NULL;
    if (span != NULL)
        span->state = SPAN_USED;
    hak_lock_give(&heap.lock);
    return span;
}

struct span *hak_span_take_roomy(struct span_fit fit)
{
    struct span *span = take_with_room(fit);
    if (span == NULL && grow(2 * fit.count + fit.alignment - 1, 1))
        span = take_with_room(fit);
    return span;
}

static void give_as(struct span *span, enum span_state state)
{
    uint64_t now_ms = hak_os_clock_ms();
    hak_lock_take(&heap.lock);
    span->user = NULL;
    span->state = (uint32_t)state;
    span->freed_ms = now_ms;
    insert_free(span, true);
    hak_lock_give(&heap.lock);
}

void hak_span_give(struct span *span)
{
    hak_assert(span->state == SPAN_USED);
    if (HAK_LIKELY(span->piece_count == 0))
        give_as(span, SPAN_WARM);
    else
        hak_span_give_clean(span);
}

void hak_span_give_clean(struct span *span)
{
    hak_assert(span->state == SPAN_USED);
    if (span->piece_count == 0 || hak_span_pieces_renew(span))
        give_as(span, SPAN_CLEAN);
    else
        hak_span_lose(span);
}

void hak_span_lose(struct span *span)
{
    hak_span_pieces_forget(span);
    hak_fetch_add_relaxed(&heap.lost_bytes, hak_span_bytes(span));
    hak_tag_write(span->first, span->count, HAK_TAG_HOLE);
    hak_meta_pool_give(&span_pool, span);
}

/* Extends the span by what is free behind it. When that is too little but the window ends there,
 * *missing says how many granules the window would have to grow by; else it is 0. */
static bool extend_locked(struct span *span, uint32_t count, uint32_t *missing)
{
    uint32_t more = count - span->count;
    uint32_t end = span->first + span->count;
    struct span *behind = free_span_at(end);
    *missing = 0;
    if (behind != NULL && behind->count >= more) {
        if (!carve(behind, behind->first, more))
            return false;
        span->count += behind->count;
        hak_meta_pool_give(&span_pool, behind);
        return true;
    }
    uint32_t room = behind == NULL || behind->state == SPAN_WARM ? 0 : behind->count;
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    if ((size_t)end + room == committed)
        *missing = more - room;
    return false;
}

bool hak_span_extend(struct span *span, uint32_t count)
{
    uint32_t missing;
    hak_lock_take(&heap.lock);
    bool is_done = extend_locked(span, count, &missing);
    hak_lock_give(&heap.lock);
    if (is_done || missing == 0 || !grow(missing, 1))
        return is_done;
    hak_lock_take(&heap.lock);
    is_done = extend_locked(span, count, &missing);
    hak_lock_give(&heap.lock);
    return is_done;
}

void hak_span_cut(struct span *span, uint32_t count)
{
    struct span *tail = record_like(span, span->first + count, span->count - count);
    if (tail == NULL)
        return;
    hak_span_pieces_cut(span, count, tail);
    span->count = count;
    hak_span_give(tail);
}

struct granule_range hak_span_detach(struct span *span)
{
    struct granule_range range = {span->first, span->count};
    hak_meta_pool_give(&span_pool, span);
    return range;
}

struct span *hak_span_attach(struct granule_range range)
{
    struct span *span = hak_meta_pool_take(&span_pool, sizeof *span);
    if (span != NULL) {
        span->first = range.first;
        span->count = range.count;
        span->state = SPAN_USED;
        span->piece_count = 0;
    }
    return span;
}

/* Takes the oldest warm span out of the bins if it is old enough; NULL otherwise. */
static struct span *take_oldest(uint64_t before_ms, size_t keep_bytes)
{
    struct span *span = NULL;
    hak_lock_take(&heap.lock);
    start_once();
    struct list_link *oldest = heap.ages.next;
    if (oldest != &heap.ages && hak_load_relaxed(&heap.warm_bytes) > keep_bytes) {
        span = hak_list_element(oldest, struct span, age_link);
        if (span->freed_ms > before_ms)
            span = NULL;
        else
            unlink_free(span);
    }
    hak_lock_give(&heap.lock);
    return span;
}

size_t hak_span_purge(uint64_t before_ms, size_t keep_bytes, uint32_t budget)
{
    size_t total = 0;
    for (; budget > 0; budget--) {
        struct span *span = take_oldest(before_ms, keep_bytes);
        if (span == NULL)
            break;
        size_t bytes = (size_t)span->count << HAK_GRANULE_SHIFT;
        bool is_purged = hak_os_purge(hak_granule_address(span->first), bytes);
        hak_lock_take(&heap.lock);
        span->state = is_purged ? SPAN_CLEAN : SPAN_WARM;
        span->freed_ms = hak_os_clock_ms();
        insert_free(span, true);
        hak_lock_give(&heap.lock);
        if (!is_purged)
            break;
        total += bytes;
    }
    return total;
}

size_t hak_span_warm_bytes(void)
{
    return hak_load_relaxed(&heap.warm_bytes);
}

size_t hak_span_clean_bytes(void)
{
    return hak_load_relaxed(&heap.clean_bytes);
}

size_t hak_span_lost_bytes(void)
{
    return hak_load_relaxed(&heap.lost_bytes);
}

uint64_t hak_span_oldest_ms(void)
{
    return hak_load_relaxed(&heap.oldest_ms);
}

/* Checks one set of bins; returns the bytes in it, or SIZE_MAX when something is wrong. */
static size_t audit_bins(const struct span_bins *bins, enum span_state state)
{
    size_t bytes = 0;
    for (uint32_t bin = 0; bin < HAK_SPAN_BIN_COUNT; bin++) {
        const struct list_link *list = &bins->lists[bin];
        if (hak_list_is_empty(list) == ((bins->in_use[bin / 64] >> (bin % 64)) & 1))
            return SIZE_MAX;
        for (const struct list_link *i = list->next; i != list; i = i->next) {
            const struct span *span = hak_list_element(i, struct span, bin_link);
            const struct span *behind = free_span_at((size_t)span->first + span->count);
            if (span->state != (uint32_t)state || hak_span_bin_of(span->count) != bin ||
                free_span_at(span->first) != span ||
                free_span_at(span->first + span->count - 1) != span ||
                (behind != NULL && behind->state == span->state))
                return SIZE_MAX;
            bytes += (size_t)span->count << HAK_GRANULE_SHIFT;
        }
    }
    return bytes;
}

bool hak_span_heap_is_sound(void)
{
    hak_lock_take(&heap.lock);
    start_once();
    bool is_sound = audit_bins(&heap.warm, SPAN_WARM) == hak_span_warm_bytes() &&
                    audit_bins(&heap.clean, SPAN_CLEAN) == hak_span_clean_bytes();
    hak_lock_give(&heap.lock);
    return is_sound;
}

void hak_span_lock(void)
{
    hak_lock_take(&heap.lock);
}

void hak_span_unlock(void)
{
    hak_lock_give(&heap.lock);
}

void hak_span_lock_reset(void)
{
    hak_lock_reset(&heap.lock);
}
