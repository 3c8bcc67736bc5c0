/* SPDX-License-Identifier: MIT */
#include "span/span_purge.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "misuse/mark.h"
#include "os/os.h"
#include "os/os_huge.h"
#include "region/huge_wish.h"
#include "region/mappings.h"
#include "span/big_cache.h"
#include "span/span_free.h"
#include "span/span_heap.h"

/* The share of limited address space that may stay mapped while free, so that memory that is freed
 * and taken again costs no system calls. */
#define FREE_SHARE 16

/* Takes the end of a warm span, cut where a superslab begins, that is to go if `excess_bytes` are
 * given up; NULL: all of it is. */
static struct span *carve_excess(struct span *span, size_t excess_bytes)
{
    size_t base = hak_region.base >> HAK_GRANULE_SHIFT;
    size_t end = base + span->first + span->count;
    size_t excess = hak_align_up(excess_bytes, HAK_GRANULE_BYTES) >> HAK_GRANULE_SHIFT;
    if (excess >= span->count)
        return NULL;
    size_t first = hak_align_down(end - excess, HAK_SUPERSLAB_GRANULES);
    return first <= base + span->first
               ? NULL
               : hak_span_free_carve(span, (uint32_t)(first - base), (uint32_t)(end - first));
}

/* Takes the set's oldest span out of the bins if it is old enough, or as much of its end as is to
 * go; NULL otherwise. */
static struct span *take_oldest_of(uint32_t set, uint64_t before_ms, size_t keep_bytes)
{
    struct span *span = NULL;
    hak_span_lock_set(set);
    const struct list_link *ages = &hak_span_free.sets[set].ages;
    struct list_link *oldest = ages->next;
    size_t warm_bytes = hak_span_free_warm_bytes();
    if (oldest != ages && warm_bytes > keep_bytes) {
        struct span *whole = hak_list_element(oldest, struct span, age_link);
        if (whole->freed_ms <= before_ms) {
            span = carve_excess(whole, warm_bytes - keep_bytes);
            if (span == NULL)
                hak_span_free_remove(span = whole);
        }
    }
    hak_span_unlock_set(set);
    return span;
}

/* The same of all sets. Another thread may have emptied the one that was chosen: then it has no
 * span, or none as old, when it is looked at again. */
static struct span *take_oldest(uint64_t before_ms, size_t keep_bytes)
{
    struct span *span = NULL;
    uint32_t set;
    while (span == NULL && hak_span_free_warm_bytes() > keep_bytes &&
           (set = hak_span_free_oldest_set(before_ms)) != HAK_SPAN_SETS)
        span = take_oldest_of(set, before_ms, keep_bytes);
    return span;
}

/* The first part of the window refuses huge pages. */
bool hak_span_is_refilled(const struct span *span)
{
    int64_t thp = hak_conf_number(thp);
    size_t end_bytes = (size_t)(span->first + span->count) << HAK_GRANULE_SHIFT;
    return thp == THP_ON || (thp == THP_AUTO && end_bytes > HAK_SMALL_PAGES_BYTES &&
                             hak_os_huge_pages() == HUGE_ALWAYS);
}

static void refuse_huge_page(uintptr_t start)
{
    if (hak_mappings_admit_advice(hak_granule_of((void *)start)))
        hak_os_refuse_huge_pages((void *)start, HAK_SUPERSLAB_BYTES);
}

static void refuse_refill(uintptr_t start, uintptr_t end)
{
    uintptr_t head = hak_align_down(start, HAK_SUPERSLAB_BYTES);
    uintptr_t tail = hak_align_down(end, HAK_SUPERSLAB_BYTES);
    if (head != start)
        refuse_huge_page(head);
    if (tail != end && (tail != head || head == start))
        refuse_huge_page(tail);
}

bool hak_span_is_too_much(const struct span *span)
{
    size_t most = hak_region_most_bytes();
    size_t mapped =
        hak_span_free_warm_bytes() + hak_excess(hak_load_relaxed(&hak_span_free.clean_bytes),
                                                hak_load_relaxed(&hak_span_free.bare_bytes));
    return HAK_UNLIKELY(most != SIZE_MAX) && mapped + hak_span_bytes(span) > most / FREE_SHARE;
}

/* Gives the addresses back; false: the kernel refuses, or there would be too many mappings. */
static bool unmap(const struct span *span)
{
    if (hak_mappings_count() >= hak_mappings_most() || !hak_region_unmap(hak_span_granules(span)))
        return false;
    hak_mark_forget(span->first, span->count);
    return true;
}

enum span_state hak_span_discard(const struct span *span)
{
    uintptr_t start = (uintptr_t)hak_granule_address(span->first);
    hak_huge_refuse(hak_span_granules(span));
    if (HAK_UNLIKELY(hak_span_is_too_much(span)) && unmap(span))
        return SPAN_BARE;
    if (hak_span_is_refilled(span))
        refuse_refill(start, start + hak_span_bytes(span));
    return hak_mark_purge(span->first, span->count) ? SPAN_CLEAN : SPAN_WARM;
}

/* Puts a span back, under the lock of its set if it is warm, else under SPAN. */
static void put_back(struct span *span, enum span_state state, uint64_t now_ms)
{
    if (state != SPAN_WARM)
        span->set = 0;
    span->state = (uint32_t)state;
    span->freed_ms = now_ms;
    hak_span_free_insert(span);
}

static void give_refused(struct list_link *refused)
{
    uint64_t now_ms = hak_os_clock_ms();
    while (!hak_list_is_empty(refused)) {
        struct span *span = hak_list_element(refused->next, struct span, age_link);
        hak_list_remove(&span->age_link);
        uint32_t set = span->set;
        hak_span_lock_set(set);
        put_back(span, SPAN_WARM, now_ms);
        hak_span_unlock_set(set);
    }
}

/* Spans that the kernel refused are set aside, so that they do not stop the rest. What others free
 * meanwhile is not this thread's work. */
static size_t purge(uint64_t before_ms, size_t keep_bytes, uint32_t budget, enum big_leave why)
{
    size_t total = 0, refused_bytes = 0;
    size_t most = hak_excess(hak_span_free_warm_bytes(), keep_bytes);
    struct list_link refused;
    hak_list_start(&refused);
    for (; budget > 0 && total < most; budget--) {
        struct span *span = take_oldest(before_ms, hak_excess(keep_bytes, refused_bytes));
        if (span == NULL)
            break;
        size_t bytes = hak_span_bytes(span);
        enum span_state state = hak_span_discard(span);
        if (state == SPAN_WARM) {
            refused_bytes += bytes;
            hak_list_insert_last(&refused, &span->age_link);
            continue;
        }
        uint64_t now_ms = hak_os_clock_ms();
        hak_span_lock();
        hak_big_cache_left(span->count, span->freed_ms, now_ms, why);
        put_back(span, state, now_ms);
        hak_span_unlock();
        total += bytes;
    }
    give_refused(&refused);
    return total;
}

/* Takes a clean span out; NULL: there is none. */
static struct span *take_clean(void)
{
    hak_span_lock();
    hak_span_free_start(0);
    struct span *span = hak_span_bins_find(&hak_span_free.clean, (struct span_fit){1, 1, 0});
    if (span != NULL)
        hak_span_free_remove(span);
    hak_span_unlock();
    return span;
}

size_t hak_span_strip(void)
{
    size_t total = 0;
    struct span *span = NULL;
    if (HAK_LIKELY(hak_region_most_bytes() == SIZE_MAX) &&
        hak_load_relaxed(&hak_span_free.bare_bytes) == 0)
        return 0;
    while ((span = take_clean()) != NULL) {
        size_t bytes = hak_span_bytes(span);
        bool is_bare = unmap(span);
        hak_span_lock();
        put_back(span, is_bare ? SPAN_BARE : SPAN_CLEAN, span->freed_ms);
        hak_span_unlock();
        if (!is_bare)
            break;
        total += bytes;
    }
    return total;
}

size_t hak_span_purge(uint64_t before_ms, size_t keep_bytes, uint32_t budget)
{
    enum big_leave why = before_ms == UINT64_MAX ? LEAVES_TRIMMED : LEAVES_AGED;
    return purge(before_ms, keep_bytes, budget, why);
}

size_t hak_span_evict(size_t keep_bytes)
{
    return purge(UINT64_MAX, keep_bytes, UINT32_MAX, LEAVES_EVICTED);
}
