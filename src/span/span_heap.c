/* SPDX-License-Identifier: MIT */
#include "span/span_heap.h"

#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"
#include "region/meta.h"
#include "region/tag_map.h"

/* One bin per count up to 64 granules, then eight a doubling. */
#define EXACT_COUNT 64u
#define BIN_COUNT (EXACT_COUNT + 20u * 8u)
#define BIN_WORDS ((BIN_COUNT + 63u) / 64u)
/* How many spans of a bin of mixed counts are looked at before the next bin serves. */
#define TRIES_PER_BIN 32

struct bins {
    struct list_link lists[BIN_COUNT];
    uint64_t in_use[BIN_WORDS];
};

struct span_heap {
    struct hak_lock lock;
    struct bins warm;
    struct bins clean;
    struct list_link ages;
    _Atomic size_t warm_bytes;
    _Atomic size_t clean_bytes;
    _Atomic uint64_t oldest_ms;
    bool is_started;
};
static struct span_heap heap = {.lock = HAK_LOCK_START_WITH(HAK_LOCK_SPAN),
                                .oldest_ms = UINT64_MAX};
static struct meta_pool span_pool;

static void start_once(void)
{
    if (heap.is_started)
        return;
    for (uint32_t i = 0; i < BIN_COUNT; i++) {
        hak_list_start(&heap.warm.lists[i]);
        hak_list_start(&heap.clean.lists[i]);
    }
    hak_list_start(&heap.ages);
    heap.is_started = true;
}

/* The bin in which a span of `count` granules is kept. */
static uint32_t bin_of(uint32_t count)
{
    if (count <= EXACT_COUNT)
        return count - 1;
    uint32_t doubling = hak_bit_highest(count);
    return EXACT_COUNT + (doubling - 6) * 8 + ((count >> (doubling - 3)) & 7u);
}

static struct bins *bins_of(const struct span *span)
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
    struct bins *bins = bins_of(span);
    uint32_t bin = bin_of(span->count);
    size_t bytes = (size_t)span->count << HAK_GRANULE_SHIFT;
    hak_list_insert_first(&bins->lists[bin], &span->bin_link);
    bins->in_use[bin / 64] |= 1ull << (bin % 64);
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
    struct bins *bins = bins_of(span);
    uint32_t bin = bin_of(span->count);
    size_t bytes = (size_t)span->count << HAK_GRANULE_SHIFT;
    hak_list_remove(&span->bin_link);
    if (hak_list_is_empty(&bins->lists[bin]))
        bins->in_use[bin / 64] &= ~(1ull << (bin % 64));
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

/* Where in `span` a run of `count` with the alignment starts; UINT32_MAX when it does not fit. */
static uint32_t place_in(const struct span *span, uint32_t count, uint32_t alignment)
{
    size_t base = hak_region.base >> HAK_GRANULE_SHIFT; /* it is the address that must be aligned */
    size_t first = hak_align_up(base + span->first, alignment) - base;
    return first + count <= (size_t)span->first + span->count ? (uint32_t)first : UINT32_MAX;
}

/* The best of the first few spans of one bin. */
static struct span *best_of_bin(struct list_link *list, uint32_t count, uint32_t alignment)
{
    struct span *best = NULL;
    int tries = TRIES_PER_BIN;
    for (struct list_link *i = list->next; i != list && tries-- > 0; i = i->next) {
        struct span *span = hak_list_element(i, struct span, bin_link);
        if (place_in(span, count, alignment) == UINT32_MAX)
            continue;
        if (best == NULL || span->count < best->count ||
            (span->count == best->count && span->first < best->first))
            best = span;
    }
    return best;
}

static struct span *find_in(struct bins *bins, uint32_t count, uint32_t alignment)
{
    uint32_t bin = bin_of(count);
    for (uint32_t word = bin / 64; word < BIN_WORDS; word++) {
        uint64_t in_use = bins->in_use[word];
        if (word == bin / 64)
            in_use &= ~hak_bit_low_mask(bin % 64);
        for (; in_use != 0; in_use &= in_use - 1) {
            struct list_link *list = &bins->lists[word * 64 + hak_bit_lowest(in_use)];
            struct span *span = best_of_bin(list, count, alignment);
            if (span != NULL)
                return span;
        }
    }
    return NULL;
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

static struct span *take_clean(uint32_t count, uint32_t alignment)
{
    struct span *span = find_in(&heap.clean, count, alignment);
    if (span == NULL)
        return NULL;
    struct span *joined = alignment == 1 ? take_across(span, count) : NULL;
    if (joined != NULL)
        return joined;
    return carve(span, place_in(span, count, alignment), count) ? span : NULL;
}

static struct span *take_free(uint32_t count, uint32_t alignment, bool *is_zero)
{
    hak_lock_take(&heap.lock);
    start_once();
    struct span *span = find_in(&heap.warm, count, alignment);
    if (span == NULL)
        span = take_clean(count, alignment);
    else if (!carve(span, place_in(span, count, alignment), count))
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
    hak_lock_take(&heap.lock);
    insert_free(span, true);
    hak_lock_give(&heap.lock);
    return true;
}

struct span *hak_span_take(uint32_t count, uint32_t alignment, bool *is_zero)
{
    for (int round = 0; round < 3; round++) {
        struct span *span = take_free(count, alignment, is_zero);
        if (span != NULL)
            return span;
        if (grow(count, alignment))
            continue;
        /* Nothing fits and nothing can be added: joining warm with clean spans may make room. */
        if (hak_span_purge(UINT64_MAX, 0, UINT32_MAX) == 0)
            break;
    }
    return take_free(count, alignment, is_zero);
}

void hak_span_give(struct span *span)
{
    hak_assert(span->state == SPAN_USED);
    uint64_t now_ms = hak_os_clock_ms();
    hak_lock_take(&heap.lock);
    span->user = NULL;
    span->state = SPAN_WARM;
    span->freed_ms = now_ms;
    insert_free(span, true);
    hak_lock_give(&heap.lock);
}

bool hak_span_extend(struct span *span, uint32_t count)
{
    bool is_done = false;
    hak_lock_take(&heap.lock);
    uint32_t more = count - span->count;
    struct span *behind = free_span_at((size_t)span->first + span->count);
    if (behind != NULL && behind->count >= more && carve(behind, behind->first, more)) {
        span->count += behind->count;
        hak_meta_pool_give(&span_pool, behind);
        is_done = true;
    }
    hak_lock_give(&heap.lock);
    return is_done;
}

void hak_span_cut(struct span *span, uint32_t count)
{
    struct span *tail = record_like(span, span->first + count, span->count - count);
    if (tail == NULL)
        return;
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

uint64_t hak_span_oldest_ms(void)
{
    return hak_load_relaxed(&heap.oldest_ms);
}

/* Checks one set of bins; returns the bytes in it, or SIZE_MAX when something is wrong. */
static size_t audit_bins(const struct bins *bins, enum span_state state)
{
    size_t bytes = 0;
    for (uint32_t bin = 0; bin < BIN_COUNT; bin++) {
        const struct list_link *list = &bins->lists[bin];
        if (hak_list_is_empty(list) == ((bins->in_use[bin / 64] >> (bin % 64)) & 1))
            return SIZE_MAX;
        for (const struct list_link *i = list->next; i != list; i = i->next) {
            const struct span *span = hak_list_element(i, struct span, bin_link);
            const struct span *behind = free_span_at((size_t)span->first + span->count);
            if (span->state != (uint32_t)state || bin_of(span->count) != bin ||
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
