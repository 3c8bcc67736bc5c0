/* SPDX-License-Identifier: MIT */
#include "span/span_free.h"

#include "base/bits.h"
#include "os/os.h"
#include "region/mappings.h"
#include "region/tag_map.h"

#include <string.h>

/* How many warm spans are examined for neighbours, and how many spans may form one block. */
#define MIXED_TRIES 16
#define RUN_SPANS_MOST 8
/* More records than that go back to the pool: what is taken there may never come back here. */
#define SPARE_MOST 16

struct span_free hak_span_free;
struct meta_pool hak_span_pool;

void hak_span_free_start(void)
{
    if (hak_span_free.is_started)
        return;
    hak_list_start(&hak_span_free.ages);
    hak_span_free.is_started = true;
}

HAK_INLINE struct span_bins *bins_of(const struct span *span)
{
    if (span->state == SPAN_WARM)
        return &hak_span_free.warm[span->node];
    return span->state == SPAN_CLEAN ? &hak_span_free.clean : &hak_span_free.bare;
}

/* Whether two free spans can be one. */
static bool are_alike(const struct span *one, const struct span *other)
{
    return one->state == other->state && (one->state != SPAN_WARM || one->node == other->node);
}

static void note_oldest(void)
{
    struct list_link *oldest = hak_span_free.ages.next;
    hak_store_relaxed(&hak_span_free.oldest_ms,
                      oldest == &hak_span_free.ages
                          ? 0
                          : hak_list_element(oldest, struct span, age_link)->freed_ms);
}

HAK_INLINE void write_edges(const struct span *span, void *record)
{
    hak_owner_write(span->first, 1, record);
    hak_owner_write(span->first + span->count - 1, 1, record);
}

HAK_INLINE void count_bytes(const struct span *span, size_t difference)
{
    if (span->state == SPAN_WARM) {
        hak_counter_add(&hak_span_free.warm_bytes, difference);
        return;
    }
    /* release: partner is the acquire in hak_span_clean_bytes; what is clean is known before */
    hak_store_release(&hak_span_free.clean_bytes,
                      hak_load_relaxed(&hak_span_free.clean_bytes) + difference);
    if (HAK_UNLIKELY(span->state == SPAN_BARE))
        hak_counter_add(&hak_span_free.bare_bytes, difference);
}

/* Puts a span without free neighbours of its state on its bin, a warm one behind `older` among the
 * ages. */
static void link_free(struct span *span, struct list_link *older)
{
    span->epoch = hak_span_free.epoch;
    hak_span_bins_insert(bins_of(span), span);
    write_edges(span, (char *)span + 1);
    if (span->state == SPAN_WARM) {
        hak_span_free.warm_nodes |= 1u << span->node;
        hak_list_insert_after(older, &span->age_link);
        note_oldest();
    } else if (HAK_UNLIKELY(span->state == SPAN_BARE)) {
        hak_mappings_give(-1u); /* it divides the mapping of the window */
    }
    count_bytes(span, hak_span_bytes(span));
}

void hak_span_free_remove(struct span *span)
{
    hak_span_bins_remove(bins_of(span), span);
    write_edges(span, NULL);
    if (span->state == SPAN_WARM) {
        hak_list_remove(&span->age_link);
        note_oldest();
    } else if (HAK_UNLIKELY(span->state == SPAN_BARE)) {
        hak_mappings_give(1);
    }
    count_bytes(span, -hak_span_bytes(span));
}

/* Moves the ends of a free span. */
static void reshape(struct span *span, uint32_t first, uint32_t count)
{
    struct span_bins *bins = bins_of(span);
    bool is_moved = hak_span_bin_of(span->count) != hak_span_bin_of(count);
    if (is_moved)
        hak_span_bins_remove(bins, span);
    write_edges(span, NULL);
    count_bytes(span, ((size_t)count - span->count) << HAK_GRANULE_SHIFT);
    span->first = first;
    span->count = count;
    write_edges(span, (char *)span + 1);
    if (is_moved)
        hak_span_bins_insert(bins, span);
}

HAK_INLINE struct span *free_at(size_t granule)
{
    size_t granules = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    uintptr_t record = granule < granules ? (uintptr_t)hak_owner_read(granule) : 0;
    struct span *span = record & 1 ? (struct span *)(record - 1) : NULL;
    return span != NULL && HAK_LIKELY(span->epoch == hak_span_free.epoch) ? span : NULL;
}

struct span *hak_span_free_at(size_t granule)
{
    return free_at(granule);
}

void hak_span_free_renew(void)
{
    hak_span_free.epoch++;
    hak_span_free.spare = NULL;
    hak_span_free.spare_count = 0;
    hak_span_free.is_started = false;
    memset(hak_span_free.warm, 0, sizeof hak_span_free.warm);
    memset(&hak_span_free.clean, 0, sizeof hak_span_free.clean);
    memset(&hak_span_free.bare, 0, sizeof hak_span_free.bare);
    hak_span_free.warm_nodes = 0;
    hak_store_relaxed(&hak_span_free.warm_bytes, 0);
    hak_store_relaxed(&hak_span_free.clean_bytes, 0);
    hak_store_relaxed(&hak_span_free.bare_bytes, 0);
    hak_store_relaxed(&hak_span_free.oldest_ms, 0);
    hak_span_free_start();
}

void hak_span_free_spare(struct span *record)
{
    if (HAK_UNLIKELY(hak_span_free.spare_count == SPARE_MOST)) {
        hak_meta_pool_give(&hak_span_pool, record);
        return;
    }
    hak_store_relaxed(&record->user, hak_span_free.spare);
    hak_span_free.spare = record;
    hak_span_free.spare_count++;
}

/* Kept apart from the pool, whose lock would be taken for most blocks. */
static struct span *take_record(void)
{
    struct span *record = hak_span_free.spare;
    if (HAK_UNLIKELY(record == NULL))
        return hak_meta_pool_take(&hak_span_pool, sizeof *record);
    hak_span_free.spare = hak_load_relaxed(&record->user);
    hak_span_free.spare_count--;
    hak_store_relaxed(&record->user, NULL);
    return record;
}

/* The free neighbour with an edge at `granule` that `span` can be one with; NULL: none. */
HAK_INLINE struct span *alike_at(size_t granule, const struct span *span)
{
    struct span *other = free_at(granule);
    return other != NULL && are_alike(other, span) ? other : NULL;
}

/* The free span is as old as one that stands, or would stand, behind `older` among the ages. */
static void take_age(struct span *span, uint64_t freed_ms, struct list_link *older)
{
    span->freed_ms = freed_ms;
    if (span->state != SPAN_WARM || older == &span->age_link)
        return;
    hak_list_remove(&span->age_link);
    hak_list_insert_after(older, &span->age_link);
}

/* The span becomes a part of `whole`, which is free, as is `behind`, if any. The largest part says
 * how old they are together, and where they stand among the ages. */
static void join(struct span *whole, struct span *span, struct span *behind)
{
    uint32_t first = (uint32_t)hak_least(whole->first, span->first);
    uint32_t count = whole->count + span->count;
    uint32_t lean_count = whole->lean_count == span->lean_count ? span->lean_count : 0;
    if (span->count >= whole->count)
        take_age(whole, span->freed_ms, hak_span_free.ages.prev);
    hak_span_free_spare(span);
    if (behind != NULL) {
        if (behind->count > count)
            take_age(whole, behind->freed_ms, &behind->age_link);
        count += behind->count;
        lean_count = behind->lean_count == lean_count ? lean_count : 0;
        hak_span_free_remove(behind);
        hak_span_free_spare(behind);
    }
    reshape(whole, first, count);
    whole->lean_count = lean_count;
    if (whole->state == SPAN_WARM)
        note_oldest();
}

void hak_span_free_insert(struct span *span)
{
    struct span *before = span->first == 0 ? NULL : alike_at(span->first - 1, span);
    struct span *behind = alike_at((size_t)span->first + span->count, span);
    if (before != NULL)
        join(before, span, behind);
    else if (behind != NULL)
        join(behind, span, NULL);
    else
        link_free(span, hak_span_free.ages.prev);
}

static struct span *describe(struct span *record, const struct span *like, uint32_t first,
                             uint32_t count)
{
    if (record == NULL)
        return NULL;
    record->first = first;
    record->count = count;
    record->state = like->state;
    record->freed_ms = like->freed_ms;
    record->node = like->node;
    record->piece_count = 0;
    record->is_divided = false;
    record->lean_count = like->lean_count;
    return record;
}

struct span *hak_span_record_like(const struct span *like, uint32_t first, uint32_t count)
{
    return describe(hak_meta_pool_take(&hak_span_pool, sizeof *like), like, first, count);
}

struct span *hak_span_free_carve(struct span *span, uint32_t first, uint32_t count)
{
    uint32_t head = first - span->first;
    uint32_t tail = span->count - head - count;
    if (head + tail == 0) {
        hak_span_free_remove(span);
        return span;
    }
    if (span->lean_count != 0 && (head % span->lean_count != 0 || count % span->lean_count != 0))
        span->lean_count = 0;
    struct span *taken = describe(take_record(), span, first, count);
    if (taken == NULL)
        return NULL;
    if (head == 0 || tail == 0) {
        reshape(span, head == 0 ? first + count : span->first, head + tail);
        return taken;
    }
    struct span *behind = describe(take_record(), span, first + count, tail);
    if (behind == NULL) {
        hak_span_free_spare(taken);
        return NULL;
    }
    reshape(span, span->first, head);
    link_free(behind, &span->age_link);
    return taken;
}

/* Neighbouring free spans, warm and clean by turns. */
struct run {
    struct span *first;
    struct span *last;
    uint32_t count;
    uint32_t warm_count;
    bool is_cut_in_front; /* the first one is longer than needed, else the last one is */
};

static void run_add(struct run *run, const struct span *span)
{
    run->count += span->count;
    run->warm_count += span->state == SPAN_WARM ? span->count : 0;
}

/* The free span with an edge at this granule whose memory is usable as it is. */
static struct span *mapped_at(size_t granule)
{
    struct span *span = hak_span_free_at(granule);
    return span == NULL || span->state == SPAN_BARE ? NULL : span;
}

/* The run of at least `count` granules around a warm span, first to its end, then to its front. */
static struct run run_around(struct span *warm, uint32_t count)
{
    struct run run = {warm, warm, warm->count, warm->count, false};
    for (int tries = 0; run.count < count && tries < RUN_SPANS_MOST; tries++) {
        struct span *behind = mapped_at((size_t)run.last->first + run.last->count);
        struct span *before =
            behind != NULL || run.first->first == 0 ? NULL : mapped_at(run.first->first - 1);
        if (behind == NULL && before == NULL)
            break;
        run.is_cut_in_front = behind == NULL;
        if (behind != NULL)
            run_add(&run, run.last = behind);
        else
            run_add(&run, run.first = before);
    }
    return run;
}

/* Makes one span of the run's spans, of which the one at the open end was cut to size. */
static struct span *run_join(struct run run, uint32_t end, uint32_t count, uint32_t node)
{
    struct span *joined = run.first;
    for (uint32_t at = joined->first + joined->count; at < end;) {
        struct span *part = at == run.last->first ? run.last : hak_span_free_at(at);
        at += part->count;
        if (part != run.last || run.is_cut_in_front)
            hak_span_free_remove(part);
        hak_span_free_spare(part);
    }
    joined->count = count;
    joined->node = node;
    joined->state = SPAN_WARM;
    joined->lean_count = 0;
    return joined;
}

/* Of the runs around the node's warm spans freed last, the one with the most warm memory. */
static struct run best_run(uint32_t count, uint32_t node)
{
    struct run best = {NULL, NULL, 0, 0, false};
    int tries = MIXED_TRIES;
    for (struct list_link *i = hak_span_free.ages.prev; i != &hak_span_free.ages && tries-- > 0;
         i = i->prev) {
        struct span *warm = hak_list_element(i, struct span, age_link);
        if (warm->node != node)
            continue;
        struct run run = run_around(warm, count);
        if (run.count >= count && run.warm_count > best.warm_count)
            best = run;
    }
    return best;
}

struct span *hak_span_free_take_mixed(uint32_t count, uint32_t node)
{
    struct run best = best_run(count, node);
    if (best.first == NULL || best.first == best.last)
        return NULL;
    uint32_t excess = best.count - count;
    uint32_t end = best.last->first + best.last->count - (best.is_cut_in_front ? 0 : excess);
    struct span **cut = best.is_cut_in_front ? &best.first : &best.last;
    uint32_t start = best.is_cut_in_front ? (*cut)->first + excess : (*cut)->first;
    struct span *taken = hak_span_free_carve(*cut, start, (*cut)->count - excess);
    if (taken == NULL)
        return NULL;
    *cut = taken;
    if (!best.is_cut_in_front)
        hak_span_free_remove(best.first);
    return run_join(best, end, count, node);
}

static bool is_whole_places(const struct span *span)
{
    return span->lean_count == 0 || span->count % span->lean_count == 0;
}

/* Checks one set of bins; returns the bytes in it, or SIZE_MAX when something is wrong. */
static size_t audit_bins(const struct span_bins *bins, enum span_state state)
{
    size_t bytes = 0;
    for (uint32_t bin = 0; bin < HAK_SPAN_BIN_COUNT; bin++) {
        const struct list_link *list = &bins->lists[bin];
        if (!hak_span_bins_has(bins, bin))
            continue;
        if (hak_list_is_empty(list))
            return SIZE_MAX;
        for (const struct list_link *i = list->next; i != list; i = i->next) {
            const struct span *span = hak_list_element(i, struct span, bin_link);
            const struct span *behind = hak_span_free_at((size_t)span->first + span->count);
            if (span->state != (uint32_t)state || hak_span_bin_of(span->count) != bin ||
                hak_span_free_at(span->first) != span || !is_whole_places(span) ||
                hak_span_free_at(span->first + span->count - 1) != span ||
                (behind != NULL && are_alike(behind, span)))
                return SIZE_MAX;
            bytes += hak_span_bytes(span);
        }
    }
    return bytes;
}

bool hak_span_free_is_sound(void)
{
    size_t warm_bytes = 0;
    for (uint32_t node = 0; node < HAK_NODES_MOST; node++) {
        if ((hak_span_free.warm_nodes & 1u << node) == 0)
            continue;
        size_t bytes = audit_bins(&hak_span_free.warm[node], SPAN_WARM);
        if (bytes == SIZE_MAX)
            return false;
        warm_bytes += bytes;
    }
    size_t clean_bytes = audit_bins(&hak_span_free.clean, SPAN_CLEAN);
    size_t bare_bytes = audit_bins(&hak_span_free.bare, SPAN_BARE);
    return warm_bytes == hak_load_relaxed(&hak_span_free.warm_bytes) && clean_bytes != SIZE_MAX &&
           bare_bytes == hak_load_relaxed(&hak_span_free.bare_bytes) &&
           clean_bytes + bare_bytes == hak_load_relaxed(&hak_span_free.clean_bytes);
}
