/* SPDX-License-Identifier: MIT */
#include "span/large.h"

#include "base/bits.h"
#include "base/check.h"
#include "misuse/report.h"
#include "os/os.h"
#include "os/os_move.h"
#include "policy/policy_table.h"
#include "region/tag_map.h"
#include "span/big_cache.h"
#include "span/detached.h"
#include "span/huge_blocks.h"
#include "span/large_block.h"
#include "span/span_cache.h"
#include "span/span_free.h"
#include "span/span_heap.h"
#include "span/span_purge.h"
#include "span/zero.h"
#include "stats/counters.h"

#include <string.h>

/* A block that would leave no room for that gets a granule more where it is clean, so that one page
 * of it takes memory; where every granule counts, from here on only (docs/adr/0010). */
#define COLOUR_ROOM_FROM_BYTES HAK_MIB

/* From here on realloc moves pages instead of copying them. */
#define MOVE_BYTES_LEAST HAK_MIB
/* A page table of the machines we know describes 2 MiB. */
#define PAGE_TABLE_GRANULES 32u

/* Live blocks and cached spans: how many, above their granules. One word, since each addition costs
 * as much as twenty others. */
static _Atomic uint64_t held;
#define HELD_ONE ((uint64_t)1 << 32)
#define LOOK_BYTES (4 * HAK_MIB)
static _Atomic size_t peak_bytes; /* the most that was ever held */

/* Bytes that the block and all its possible starts take. */
static size_t coloured_bytes(size_t bytes, size_t alignment, enum large_room room)
{
    if (alignment > HAK_COLOUR_ALIGNMENT_MOST ||
        (room == LARGE_PACKED && bytes < COLOUR_ROOM_FROM_BYTES))
        return bytes;
    return bytes + (HAK_COLOURS - 1) * HAK_CACHE_LINE_BYTES;
}

/* The span, which has no tag unless it comes from a cache, holds a block from now on. */
static void *publish(struct span *span, size_t before)
{
    void *block = hak_large_begin_block(span, before);
    if (hak_tag_read(span->first) != HAK_TAG_SPAN) {
        hak_owner_write(span->first, 1, span);
        hak_tag_write(span->first, 1, HAK_TAG_SPAN);
    }
    return block;
}

static size_t bytes_of(uint64_t sum)
{
    return (size_t)(uint32_t)sum << HAK_GRANULE_SHIFT;
}

/* Where threads meet, what their sets have together is not asked for at each block. */
static bool is_step(size_t bytes, uint32_t granules)
{
    size_t before = bytes - ((size_t)granules << HAK_GRANULE_SHIFT);
    return before / LOOK_BYTES != bytes / LOOK_BYTES;
}

/* Counts so many more blocks and granules held. Held and warm bytes together may exceed the peak of
 * held bytes only by little: the program has needed that much anyway, and within it no memory is
 * given up early. Nor is what slabs have just left: a wave of small blocks wants it again. */
static void count_held(uint32_t blocks, uint32_t granules)
{
    uint64_t more = blocks * HELD_ONE + granules;
    size_t bytes = bytes_of(hak_fetch_add_relaxed(&held, more) + more);
    size_t peak = hak_load_relaxed(&peak_bytes);
    if (bytes > peak)
        hak_store_relaxed(&peak_bytes, peak = bytes); /* a race loses a little of the peak, once */
    if (HAK_UNLIKELY(hak_span_set_count() > 1) && !is_step(bytes, granules))
        return;
    size_t most = hak_big_cache_most_bytes(bytes, peak);
    size_t warm = hak_span_free_warm_bytes();
    if (HAK_LIKELY(warm <= most))
        return;
    most += hak_least(hak_span_attached_bytes(), SIZE_MAX - most);
    most = hak_least(most, hak_policy_read(big_cache_bytes));
    if (warm <= most)
        return;
    if (!hak_lock_try(&hak_region.purge_lock))
        return; /* somebody gives memory back; the next change looks again */
    size_t evicted_bytes = hak_span_evict(most);
    hak_lock_give(&hak_region.purge_lock);
    hak_stat_global_add(spans_evicted_bytes, evicted_bytes);
}

/* A span from the span heap, counted: as long as wished, or `count` granules at least. */
static struct span *take_span(struct span_fit fit, uint32_t wished_count, uint32_t set,
                              bool *is_zero)
{
    struct span *span = hak_span_take_wished(fit, wished_count, set, is_zero);
    if (HAK_UNLIKELY(span == NULL) && wished_count > fit.count)
        span = hak_span_take_wished(fit, fit.count, set, is_zero);
    if (span == NULL)
        return NULL;
    count_held(1, span->count);
    if (HAK_UNLIKELY(!hak_big_cache_is_needed()))
        hak_big_cache_note_wanted(span->count);
    return span;
}

size_t hak_large_good_bytes(size_t bytes)
{
    size_t room_bytes = (HAK_COLOURS - 1) * HAK_CACHE_LINE_BYTES;
    return hak_align_up(bytes + room_bytes, HAK_GRANULE_BYTES) - room_bytes;
}

static uint32_t least_granules(const struct large_request *request)
{
    return hak_large_granules(hak_most(request->bytes, 1));
}

static uint32_t wished_granules(const struct large_request *request)
{
    return hak_large_granules(coloured_bytes(request->bytes, request->alignment, request->room));
}

static uint32_t alignment_granules(const struct large_request *request)
{
    return (uint32_t)hak_most(request->alignment >> HAK_GRANULE_SHIFT, 1);
}

static bool is_too_large(const struct large_request *request)
{
    return request->bytes > hak_region.window_bytes || request->alignment > hak_region.window_bytes;
}

bool hak_large_fits_cache(const struct large_request *request)
{
    return !is_too_large(request) && least_granules(request) <= HAK_SPAN_CACHE_GRANULES_MOST;
}

struct span *hak_large_find(struct span_cache *cache, const struct large_request *request)
{
    return hak_span_cache_take(cache, least_granules(request), alignment_granules(request));
}

struct span *hak_large_find_recent(struct span_cache *cache, const struct large_request *request)
{
    struct span *unfit;
    struct span *span = hak_span_cache_take_recent(cache, least_granules(request),
                                                   alignment_granules(request), &unfit);
    if (HAK_UNLIKELY(unfit != NULL))
        hak_large_release(unfit);
    if (span == NULL)
        hak_span_cache_note_unfit(cache);
    return span;
}

void *hak_large_take_in(struct span *span, const struct large_request *request)
{
    size_t bytes = hak_most(request->bytes, 1);
    bool is_zero = false;
    if (is_too_large(request))
        return NULL;
    if (span == NULL) {
        struct span_fit fit = {least_granules(request), alignment_granules(request), 0};
        span = take_span(fit, (uint32_t)hak_most(wished_granules(request), 1),
                         hak_span_set_of(request->heap_id), &is_zero);
    }
    if (span == NULL)
        return NULL;
    size_t before =
        hak_large_colour_bytes(span->first, hak_span_bytes(span) - bytes, request->alignment);
    if (request->content == LARGE_ZERO && !is_zero)
        hak_zero_make(span, before, bytes);
    else if (request->content == LARGE_ANY && is_zero)
        hak_huge_block_begin(span);
    span->began_as_zeros = request->content == LARGE_ZERO;
    return publish(span, before);
}

/* No live block starts there, or none in the span at all, which is kept for another one. */
static _Noreturn HAK_NOINLINE void report(const struct span *span, const void *block, bool is_free,
                                          const char *what)
{
    bool is_twice = is_free && strcmp(what, "invalid free") == 0;
    hak_misuse(is_twice ? "double free" : what, block, hak_load_relaxed(&span->user_bytes),
               is_free ? "already free" : "not the start of the block");
}

/* The record of a live large block. */
static struct span *span_of(const void *block, const char *what)
{
    uint32_t granule = hak_granule_of(block);
    if (HAK_UNLIKELY(hak_tag_read(granule) != HAK_TAG_SPAN))
        hak_misuse(what, block, 0, "no block is live there");
    struct span *span = hak_owner_read(granule);
    if (HAK_UNLIKELY(span == NULL)) /* another free of it is under way */
        hak_misuse("double free", block, 0, "already free");
    void *user = hak_load_relaxed(&span->user);
    if (HAK_UNLIKELY(user != block))
        report(span, block, user == NULL, what);
    return span;
}

bool hak_large_is_block(const void *block)
{
    const struct span *span = hak_span_named_at(hak_granule_of(block));
    return span != NULL && hak_load_relaxed(&span->user) == block;
}

static void count_given(uint32_t blocks, size_t granules)
{
    hak_fetch_sub_relaxed(&held, blocks * HELD_ONE + granules);
}

bool hak_large_may_keep(const struct span *span)
{
    return span->count <= HAK_SPAN_CACHE_GRANULES_MOST && span->piece_count == 0 &&
           HAK_LIKELY(!hak_region_is_tight() && hak_big_cache_is_needed());
}

static void drop(struct span_cache *cache, uint64_t before_ms, size_t keep_bytes,
                 uint32_t keep_count)
{
    uint32_t count = hak_load_relaxed(&cache->count);
    if (count == 0)
        return;
    size_t bytes = hak_span_cache_drop(cache, before_ms, keep_bytes, keep_count);
    count_given(count - hak_load_relaxed(&cache->count), bytes >> HAK_GRANULE_SHIFT);
}

void hak_large_keep(struct span_cache *cache, struct span *span, size_t most_bytes)
{
    size_t bytes = hak_span_bytes(span);
    if (hak_load_relaxed(&cache->bytes) + bytes > most_bytes ||
        hak_load_relaxed(&cache->count) >= HAK_SPAN_CACHE_SLOTS)
        drop(cache, 0, most_bytes / 2, HAK_SPAN_CACHE_SLOTS / 2);
    hak_span_cache_put(cache, span);
}

void hak_large_drop_cached(struct span_cache *cache, uint64_t before_ms, size_t keep_bytes,
                           uint32_t keep_count)
{
    hak_span_cache_gather_recent(cache);
    drop(cache, before_ms, keep_bytes, (uint32_t)hak_least(keep_count, HAK_SPAN_CACHE_SLOTS));
}

struct span *hak_large_end(void *block)
{
    struct span *span = span_of(block, "invalid free");
    hak_huge_block_end(span);
    if (HAK_LIKELY(span->group == NULL)) {
        hak_large_withdraw(span, block);
        return span;
    }
    hak_span_lock(); /* no fork finds it dead and still among its heap's blocks */
    hak_large_withdraw(span, block);
    hak_large_leave(span);
    hak_span_unlock();
    return span;
}

void hak_large_release(struct span *span)
{
    hak_span_unname(span);
    count_given(1, span->count);
    if (HAK_UNLIKELY(hak_lock_is_noted_from(HAK_LOCK_SPAN_SET))) {
        /* A handler interrupted its own thread in a section like ours: the memory goes to the
         * kernel, the addresses are lost. */
        hak_lock_note_handler();
        hak_os_purge(hak_granule_address(span->first), hak_span_bytes(span));
        return;
    }
    hak_span_give(span);
}

void hak_large_give_up(struct span *span)
{
    uint32_t count = span->count;
    if (hak_lock_is_noted_from(HAK_LOCK_SPAN_SET) ||
        (hak_big_cache_is_needed() && !hak_zero_goes_back(span))) {
        hak_large_release(span);
        return;
    }
    hak_span_unname(span);
    count_given(1, count);
    bool is_gone = hak_span_give_purged(span);
    hak_big_cache_note_given_up(count, is_gone);
    hak_stat_global_add(spans_given_up, is_gone);
}

void hak_large_give(void *block)
{
    hak_large_release(hak_large_end(block));
}

void hak_large_lose(void *block)
{
    struct span *span = hak_large_end(block);
    hak_span_unname(span);
    count_given(1, span->count);
    hak_os_purge(hak_granule_address(span->first), hak_span_bytes(span));
    hak_span_lose(span);
}

size_t hak_large_usable_bytes(const void *block, const char *what)
{
    return hak_load_relaxed(&span_of(block, what)->user_bytes);
}

struct list_link *hak_large_group_of(const void *block, const char *what)
{
    return span_of(block, what)->group;
}

void hak_large_join(void *block, struct list_link *group)
{
    struct span *span = span_of(block, "invalid heap block");
    hak_span_lock();
    span->group = group;
    hak_list_insert_first(group, &span->bin_link);
    hak_span_unlock();
}

bool hak_large_resize(void *block, size_t bytes)
{
    struct span *span = span_of(block, "invalid realloc");
    uint32_t old_count = span->count;
    size_t before = hak_span_bytes(span) - hak_load_relaxed(&span->user_bytes);
    if (bytes > hak_region.window_bytes || HAK_UNLIKELY(hak_lock_is_noted_from(HAK_LOCK_PURGE)))
        return false;
    uint32_t count = hak_large_granules(before + bytes);
    if (count > old_count && !hak_span_extend(span, count))
        return false;
    if (count < old_count)
        hak_span_cut(span, count);
    hak_store_relaxed(&span->user_bytes, hak_span_bytes(span) - before);
    if (span->count > old_count)
        count_held(0, span->count - old_count);
    else if (span->count < old_count)
        count_given(0, old_count - span->count);
    return true;
}

/* Where the block can go with as much room behind it again: congruent to where it is as far as page
 * tables go, when it is long enough that whole tables move, or its mappings end at superslabs. */
static struct span *take_target(const struct span *span, uint32_t count)
{
    struct span_fit fit = {count, 1, 0};
    if (span->count >= 2 * PAGE_TABLE_GRANULES || hak_span_is_divided(span)) {
        size_t base = hak_region.base >> HAK_GRANULE_SHIFT;
        fit.alignment = PAGE_TABLE_GRANULES;
        fit.phase = (uint32_t)((base + span->first) % PAGE_TABLE_GRANULES);
    }
    return hak_span_take_roomy(fit);
}

void *hak_large_move(void *block, size_t bytes)
{
    struct span *from = span_of(block, "invalid realloc");
    size_t old_bytes = hak_span_bytes(from);
    size_t user_bytes = hak_load_relaxed(&from->user_bytes), before = old_bytes - user_bytes;
    if (old_bytes < MOVE_BYTES_LEAST || bytes < user_bytes ||
        bytes > hak_region.window_bytes / 2 - before ||
        HAK_UNLIKELY(hak_lock_is_noted_from(HAK_LOCK_PURGE)) || !hak_os_may_move())
        return NULL;
    struct span *to = take_target(from, hak_large_granules(before + bytes));
    if (to == NULL)
        return NULL;
    hak_huge_block_end(from);
    hak_large_withdraw(from, block);
    hak_span_unname(from);
    enum span_move result = hak_span_move(from, to, 0);
    if (result == SPAN_MOVED) {
        count_held(0, to->count - from->count);
        to->began_as_zeros = from->began_as_zeros;
        void *moved = publish(to, before);
        if (from->group != NULL)
            hak_large_succeed(from, to);
        hak_span_give_clean(from);
        return moved;
    }
    publish(from, before);
    if (result == SPAN_STAYED)
        hak_span_give_clean(to);
    else
        hak_span_lose(to);
    return NULL;
}

void *hak_large_take_target(const void *block, size_t bytes)
{
    const struct span *from = span_of(block, "invalid realloc");
    if (bytes > hak_region.window_bytes / 2 || HAK_UNLIKELY(hak_lock_is_noted_from(HAK_LOCK_PURGE)))
        return NULL;
    struct span *to = take_target(from, hak_large_granules(bytes));
    if (to == NULL)
        return NULL;
    count_held(1, to->count);
    to->began_as_zeros = false;
    return publish(to, 0);
}

enum span_move hak_large_carry(const void *block, void *target, size_t kept_bytes)
{
    struct span *to = span_of(target, "invalid realloc");
    enum span_move result = hak_span_move(span_of(block, "invalid realloc"), to, kept_bytes);
    if (result == SPAN_DAMAGED) {
        hak_large_withdraw(to, target);
        hak_span_unname(to);
        count_given(1, to->count);
        hak_span_lose(to);
    }
    return result;
}

size_t hak_large_held_bytes(void)
{
    return bytes_of(hak_load_relaxed(&held));
}

size_t hak_large_live_bytes(void)
{
    return hak_excess(hak_large_held_bytes(), hak_span_caches_sum().bytes);
}

size_t hak_large_live_count(void)
{
    return hak_excess(hak_load_relaxed(&held) / HELD_ONE, hak_span_caches_sum().count);
}

size_t hak_large_peak_bytes(void)
{
    return hak_load_relaxed(&peak_bytes);
}

/* Any block of the group, live or not; NULL: it has none. */
static void *first_block(const struct list_link *group)
{
    hak_span_lock();
    char *block = NULL;
    if (!hak_list_is_empty(group)) {
        const struct span *span = hak_list_element(group->next, struct span, bin_link);
        block = (char *)hak_granule_address(span->first) + hak_span_bytes(span) -
                hak_load_relaxed(&span->user_bytes);
    }
    hak_span_unlock();
    return block;
}

void hak_large_give_group(struct list_link *group)
{
    void *block;
    while ((block = first_block(group)) != NULL)
        hak_large_give(block);
}
