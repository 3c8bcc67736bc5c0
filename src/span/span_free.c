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

struct span_free hak_span_free;
struct meta_pool hak_span_pool;

void hak_span_free_start(void)
{
    if (hak_span_free.is_started)
        return;
    hak_list_start(&hak_span_free.ages);
    hak_span_free.is_started = true;
}

static struct span_bins *bins_of(const struct span *span)
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

static void write_edges(const struct span *span, void *record)
{
    hak_owner_write(span->first, 1, record);
    hak_owner_write(span->first + span->count - 1, 1, record);
}

/* Each bare span divides the mapping of the window. */
static void count_bare(const struct span *span, uint32_t difference)
{
    if (HAK_LIKELY(span->state != SPAN_BARE))
        return;
    size_t bytes = hak_span_bytes(span);
    hak_mappings_give(-difference);
    hak_counter_add(&hak_span_free.bare_bytes, difference == 1 ? bytes : -bytes);
}

/* Puts a span without free neighbours of its state on its bin. A young one goes to the end of the
 * list by age, the remainder of an old one to its start. */
static void link_free(struct span *span, bool is_young)
{
    span->epoch = hak_span_free.epoch;
    size_t bytes = hak_span_bytes(span);
    hak_span_bins_insert(bins_of(span), span);
    write_edges(span, (char *)span + 1);
    if (span->state == SPAN_WARM) {
        hak_span_free.warm_nodes |= 1u << span->node;
        if (is_young)
            hak_list_insert_last(&hak_span_free.ages, &span->age_link);
        else
            hak_list_insert_first(&hak_span_free.ages, &span->age_link);
        hak_counter_add(&hak_span_free.warm_bytes, bytes);
        note_oldest();
    } else {
        hak_counter_add(&hak_span_free.clean_bytes, bytes);
        count_bare(span, 1);
    }
}

void hak_span_free_remove(struct span *span)
{
    size_t bytes = hak_span_bytes(span);
    hak_span_bins_remove(bins_of(span), span);
    write_edges(span, NULL);
    if (span->state == SPAN_WARM) {
        hak_list_remove(&span->age_link);
        hak_counter_add(&hak_span_free.warm_bytes, -bytes);
        note_oldest();
    } else {
        hak_counter_add(&hak_span_free.clean_bytes, -bytes);
        count_bare(span, -1u);
    }
}

/* The free span that has an edge at `granule`, if any. */
struct span *hak_span_free_at(size_t granule)
{
    size_t granules = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    uintptr_t record = granule < granules ? (uintptr_t)hak_owner_read(granule) : 0;
    struct span *span = record & 1 ? (struct span *)(record - 1) : NULL;
    return span != NULL && HAK_LIKELY(span->epoch == hak_span_free.epoch) ? span : NULL;
}

void hak_span_free_renew(void)
{
    hak_span_free.epoch++;
    hak_span_free.is_started = false;
    for (uint32_t node = 0; node < HAK_NODES_MOST; node++)
        memset(hak_span_free.warm[node].in_use, 0, sizeof hak_span_free.warm[node].in_use);
    hak_span_free.warm_nodes = 0;
    memset(hak_span_free.clean.in_use, 0, sizeof hak_span_free.clean.in_use);
    memset(hak_span_free.bare.in_use, 0, sizeof hak_span_free.bare.in_use);
    hak_store_relaxed(&hak_span_free.warm_bytes, 0);
    hak_store_relaxed(&hak_span_free.clean_bytes, 0);
    hak_store_relaxed(&hak_span_free.bare_bytes, 0);
    hak_store_relaxed(&hak_span_free.oldest_ms, 0);
    hak_span_free_start();
}

/* Makes `span` free, joined with its free neighbours of the same state. */
void hak_span_free_insert(struct span *span, bool is_young)
{
    struct span *before = span->first == 0 ? NULL : hak_span_free_at(span->first - 1);
    struct span *behind = hak_span_free_at((size_t)span->first + span->count);
    struct span *neighbours[2] = {before, behind};
    for (int i = 0; i < 2; i++) {
        struct span *other = neighbours[i];
        if (other == NULL || !are_alike(other, span))
            continue;
        hak_span_free_remove(other);
        if (other->count > span->count) /* the larger part says how old the whole is */
            span->freed_ms = other->freed_ms;
        span->first = (uint32_t)hak_least(span->first, other->first);
        span->count += other->count;
        hak_meta_pool_give(&hak_span_pool, other);
    }
    link_free(span, is_young);
}

/* A record for the granules [first, first + count), in the state and age of `like`. */
struct span *hak_span_record_like(const struct span *like, uint32_t first, uint32_t count)
{
    struct span *span = hak_meta_pool_take(&hak_span_pool, sizeof *span);
    if (span == NULL)
        return NULL;
    span->first = first;
    span->count = count;
    span->state = like->state;
    span->freed_ms = like->freed_ms;
    span->node = like->node;
    span->piece_count = 0;
    return span;
}

/* Takes [first, first + count) out of the free span; the remainders on both sides stay free. False,
 * and nothing has changed: there is no record for a remainder. */
bool hak_span_free_carve(struct span *span, uint32_t first, uint32_t count)
{
    uint32_t head = first - span->first;
    uint32_t tail = span->count - head - count;
    struct span *before = head > 0 ? hak_span_record_like(span, span->first, head) : NULL;
    struct span *behind = tail > 0 ? hak_span_record_like(span, first + count, tail) : NULL;
    if ((head > 0 && before == NULL) || (tail > 0 && behind == NULL)) {
        if (before != NULL)
            hak_meta_pool_give(&hak_span_pool, before);
        if (behind != NULL)
            hak_meta_pool_give(&hak_span_pool, behind);
        return false;
    }
    hak_span_free_remove(span);
    span->first = first;
    span->count = count;
    if (before != NULL)
        link_free(before, false);
    if (behind != NULL)
        link_free(behind, false);
    return true;
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
        hak_meta_pool_give(&hak_span_pool, part);
    }
    joined->count = count;
    joined->node = node;
    joined->state = SPAN_WARM;
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
    struct span *cut = best.is_cut_in_front ? best.first : best.last;
    uint32_t start = best.is_cut_in_front ? cut->first + excess : cut->first;
    if (!hak_span_free_carve(cut, start, cut->count - excess))
        return NULL;
    if (!best.is_cut_in_front)
        hak_span_free_remove(best.first);
    return run_join(best, end, count, node);
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
                hak_span_free_at(span->first) != span ||
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
