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

void hak_span_free_start(uint32_t set)
{
    struct span_set *own = &hak_span_free.sets[set];
    if (HAK_LIKELY(own->is_started))
        return;
    hak_list_start(&own->ages);
    own->is_started = true;
    uint32_t last = hak_load_relaxed(&hak_span_free.last_set);
    /* relaxed: who finds fewer does without what was freed just now */
    while (last < set && !hak_cas_relaxed(&hak_span_free.last_set, &last, set))
        continue;
}

HAK_INLINE struct span_set *set_of(const struct span *span)
{
    return &hak_span_free.sets[span->set];
}

HAK_INLINE struct span_bins *bins_of(const struct span *span)
{
    if (span->state == SPAN_WARM)
        return &set_of(span)->warm[span->node];
    return span->state == SPAN_CLEAN ? &hak_span_free.clean : &hak_span_free.bare;
}

/* Whether two free spans of one set can be one. */
static bool are_alike(const struct span *one, const struct span *other)
{
    return one->state == other->state && (one->state != SPAN_WARM || one->node == other->node);
}

static void note_oldest(struct span_set *set)
{
    struct list_link *oldest = set->ages.next;
    hak_store_relaxed(
        &set->oldest_ms,
        oldest == &set->ages ? 0 : hak_list_element(oldest, struct span, age_link)->freed_ms);
}

HAK_INLINE void write_edges(const struct span *span, void *record)
{
    hak_owner_write(span->first, 1, record);
    hak_owner_write(span->first + span->count - 1, 1, record);
}

/* What the owner map has at its edges. */
HAK_INLINE void write_record(struct span *span)
{
    write_edges(span, (char *)span + (1 | span->set << 1));
}

HAK_INLINE void count_bytes(const struct span *span, size_t difference)
{
    if (span->state == SPAN_WARM) {
        hak_counter_add(&set_of(span)->warm_bytes, difference);
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
    struct span_set *set = set_of(span);
    span->epoch = set->epoch;
    hak_span_bins_insert(bins_of(span), span);
    write_record(span);
    if (span->state == SPAN_WARM) {
        set->warm_nodes |= 1u << span->node;
        hak_list_insert_after(older, &span->age_link);
        note_oldest(set);
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
        note_oldest(set_of(span));
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
    write_record(span);
    if (is_moved)
        hak_span_bins_insert(bins, span);
}

/* Of the bits below a record's alignment, what a free span's edge has. */
#define EDGE_BITS ((uintptr_t)HAK_CACHE_LINE_BYTES - 1)
hak_static_assert(2 * HAK_SPAN_SETS <= HAK_CACHE_LINE_BYTES, "an edge has room for the set");

/* What the owner map says of the granule; 0: nothing, or it is not committed. */
HAK_INLINE uintptr_t edge_at(size_t granule)
{
    size_t granules = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    return granule < granules ? (uintptr_t)hak_owner_read(granule) : 0;
}

/* Other sets' edges come and go meanwhile; one of this set cannot. */
HAK_INLINE struct span *free_at(size_t granule, uint32_t set)
{
    uintptr_t edge = edge_at(granule);
    if ((edge & EDGE_BITS) != (1 | set << 1))
        return NULL;
    struct span *span = (struct span *)(edge & ~EDGE_BITS);
    return HAK_LIKELY(span->epoch == hak_span_free.sets[set].epoch) ? span : NULL;
}

struct span *hak_span_free_at(size_t granule, uint32_t set)
{
    return free_at(granule, set);
}

struct span *hak_span_free_anywhere_at(size_t granule)
{
    return free_at(granule, (uint32_t)((edge_at(granule) & EDGE_BITS) >> 1));
}

void hak_span_free_renew(uint32_t set)
{
    struct span_set *own = &hak_span_free.sets[set];
    own->epoch++;
    own->spare = NULL;
    own->spare_count = 0;
    own->is_started = false;
    memset(own->warm, 0, sizeof own->warm);
    own->warm_nodes = 0;
    hak_store_relaxed(&own->warm_bytes, 0);
    hak_store_relaxed(&own->oldest_ms, 0);
    hak_span_free_start(set);
    if (set != 0)
        return;
    memset(&hak_span_free.clean, 0, sizeof hak_span_free.clean);
    memset(&hak_span_free.bare, 0, sizeof hak_span_free.bare);
    hak_store_relaxed(&hak_span_free.clean_bytes, 0);
    hak_store_relaxed(&hak_span_free.bare_bytes, 0);
}

uint32_t hak_span_free_oldest_set(uint64_t before_ms)
{
    uint32_t oldest = HAK_SPAN_SETS;
    for (uint32_t set = 0; set < hak_span_set_count(); set++) {
        uint64_t own_ms = hak_load_relaxed(&hak_span_free.sets[set].oldest_ms);
        if (own_ms == 0 || own_ms > before_ms)
            continue;
        oldest = set;
        before_ms = own_ms - 1; /* only an older one is better */
    }
    return oldest;
}

void hak_span_free_spare(struct span *record)
{
    struct span_set *set = set_of(record);
    if (HAK_UNLIKELY(set->spare_count == SPARE_MOST)) {
        hak_meta_pool_give(&hak_span_free.records, record);
        return;
    }
    hak_store_relaxed(&record->user, set->spare);
    set->spare = record;
    set->spare_count++;
}

/* Kept apart from the pool, whose lock would be taken for most blocks. */
static struct span *take_record(struct span_set *set)
{
    struct span *record = set->spare;
    if (HAK_UNLIKELY(record == NULL))
        return hak_meta_pool_take_reserved(&hak_span_free.records, sizeof *record);
    set->spare = hak_load_relaxed(&record->user);
    set->spare_count--;
    hak_store_relaxed(&record->user, NULL);
    return record;
}

/* The free neighbour with an edge at `granule` that `span` can be one with; NULL: none. */
HAK_INLINE struct span *alike_at(size_t granule, const struct span *span)
{
    struct span *other = free_at(granule, span->set);
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
        take_age(whole, span->freed_ms, set_of(whole)->ages.prev);
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
        note_oldest(set_of(whole));
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
        link_free(span, set_of(span)->ages.prev);
}

bool hak_span_free_drain(uint32_t set)
{
    struct list_link *ages = &hak_span_free.sets[set].ages;
    bool is_any = !hak_list_is_empty(ages);
    while (!hak_list_is_empty(ages)) {
        struct span *span = hak_list_element(ages->next, struct span, age_link);
        hak_span_free_remove(span);
        span->set = 0;
        hak_span_free_insert(span);
    }
    return is_any;
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
    record->set = like->set;
    record->piece_count = 0;
    record->is_divided = false;
    record->lean_count = like->lean_count;
    return record;
}

struct span *hak_span_record_like(const struct span *like, uint32_t first, uint32_t count)
{
    return describe(hak_meta_pool_take(&hak_span_free.records, sizeof *like), like, first, count);
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
    struct span *taken = describe(take_record(set_of(span)), span, first, count);
    if (taken == NULL)
        return NULL;
    if (head == 0 || tail == 0) {
        reshape(span, head == 0 ? first + count : span->first, head + tail);
        return taken;
    }
    struct span *behind = describe(take_record(set_of(span)), span, first + count, tail);
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

/* The free span with an edge at this granule, of the set or set 0, whose memory is usable as it
 * is. */
static struct span *mapped_at(size_t granule, uint32_t set)
{
    struct span *span = free_at(granule, set);
    if (span == NULL && set != 0)
        span = free_at(granule, 0);
    return span == NULL || span->state == SPAN_BARE ? NULL : span;
}

/* The run of at least `count` granules around a warm span, first to its end, then to its front. */
static struct run run_around(struct span *warm, uint32_t count)
{
    struct run run = {warm, warm, warm->count, warm->count, false};
    for (int tries = 0; run.count < count && tries < RUN_SPANS_MOST; tries++) {
        struct span *behind = mapped_at((size_t)run.last->first + run.last->count, warm->set);
        struct span *before = behind != NULL || run.first->first == 0
                                  ? NULL
                                  : mapped_at(run.first->first - 1, warm->set);
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
static struct span *run_join(struct run run, uint32_t end, uint32_t set, uint32_t node)
{
    struct span *joined = run.first;
    for (uint32_t at = joined->first + joined->count; at < end;) {
        struct span *part = at == run.last->first ? run.last : mapped_at(at, set);
        at += part->count;
        if (part != run.last || run.is_cut_in_front)
            hak_span_free_remove(part);
        hak_span_free_spare(part);
    }
    joined->count = end - joined->first;
    joined->node = node;
    joined->set = (uint16_t)set;
    joined->state = SPAN_WARM;
    joined->lean_count = 0;
    return joined;
}

/* Of the runs around the node's warm spans freed last, the one with the most warm memory. */
static struct run best_run(const struct span_set *set, uint32_t count, uint32_t node)
{
    struct run best = {NULL, NULL, 0, 0, false};
    int tries = MIXED_TRIES;
    for (struct list_link *i = set->ages.prev; i != &set->ages && tries-- > 0; i = i->prev) {
        struct span *warm = hak_list_element(i, struct span, age_link);
        if (warm->node != node)
            continue;
        struct run run = run_around(warm, count);
        if (run.count >= count && run.warm_count > best.warm_count)
            best = run;
    }
    return best;
}

struct span *hak_span_free_take_mixed(uint32_t count, uint32_t set, uint32_t node)
{
    struct run best = best_run(&hak_span_free.sets[set], count, node);
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
    return run_join(best, end, set, node);
}

static bool is_whole_places(const struct span *span)
{
    return span->lean_count == 0 || span->count % span->lean_count == 0;
}

static bool has_edges(const struct span *span)
{
    return free_at(span->first, span->set) == span &&
           free_at(span->first + span->count - 1, span->set) == span;
}

/* Checks the bins of a set; returns the bytes in them, or SIZE_MAX when something is wrong. */
static size_t audit_bins(const struct span_bins *bins, enum span_state state, uint32_t set)
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
            const struct span *behind = free_at((size_t)span->first + span->count, span->set);
            if (span->state != (uint32_t)state || span->set != set ||
                hak_span_bin_of(span->count) != bin || !is_whole_places(span) || !has_edges(span) ||
                (behind != NULL && are_alike(behind, span)))
                return SIZE_MAX;
            bytes += hak_span_bytes(span);
        }
    }
    return bytes;
}

/* The bytes of all spans by age. */
static size_t audit_ages(const struct span_set *set)
{
    size_t bytes = 0;
    for (const struct list_link *i = set->ages.next; i != NULL && i != &set->ages; i = i->next)
        bytes += hak_span_bytes(hak_list_element(i, struct span, age_link));
    return bytes;
}

static bool is_set_sound(uint32_t index)
{
    const struct span_set *set = &hak_span_free.sets[index];
    size_t warm_bytes = 0;
    for (uint32_t node = 0; node < HAK_NODES_MOST; node++) {
        if ((set->warm_nodes & 1u << node) == 0)
            continue;
        size_t bytes = audit_bins(&set->warm[node], SPAN_WARM, index);
        if (bytes == SIZE_MAX)
            return false;
        warm_bytes += bytes;
    }
    return warm_bytes == hak_load_relaxed(&set->warm_bytes) && warm_bytes == audit_ages(set);
}

bool hak_span_free_is_sound(void)
{
    for (uint32_t set = 0; set < HAK_SPAN_SETS; set++)
        if (!is_set_sound(set))
            return false;
    size_t clean_bytes = audit_bins(&hak_span_free.clean, SPAN_CLEAN, 0);
    size_t bare_bytes = audit_bins(&hak_span_free.bare, SPAN_BARE, 0);
    return clean_bytes != SIZE_MAX && bare_bytes == hak_load_relaxed(&hak_span_free.bare_bytes) &&
           clean_bytes + bare_bytes == hak_load_relaxed(&hak_span_free.clean_bytes);
}
