/* SPDX-License-Identifier: MIT */
#include "span/span_take.h"

#include "base/bits.h"
#include "os/node.h"
#include "os/os.h"
#include "span/big_cache.h"
#include "span/span_free.h"
#include "stats/counters.h"

/* An emptying of the sets is a miss if they served fewer requests since the one before. When misses
 * are so many more than others, sets pause for so many waits for SPAN: at first, and at most. */
#define SERVED_LEAST 256u
#define MISSES_MOST 8u
#define PAUSE_WAITS 4096u
#define PAUSE_WAITS_MOST ((uint64_t)1 << 20)

/* Processes below this size do not ask for the machine's memory nodes. */
#define NODES_FROM_BYTES (64 * HAK_MIB)

/* The NUMA node from which the calling thread's first touch takes memory. */
uint32_t hak_span_own_node(void)
{
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    return HAK_LIKELY(committed < NODES_FROM_BYTES) ? 0 : hak_os_node();
}

/* What is asked for: as many granules as wished where these are clean, and whose set it will be. */
struct wish {
    struct span_fit fit;
    uint32_t wished_count;
    uint32_t set;
    uint32_t node;
    uint64_t now_ms;
};

/* As long as wished in the places of such blocks: what less would leave is hardly resident. */
HAK_INLINE struct span *take_warm(const struct wish *wish, uint32_t set)
{
    struct span_fit fit = wish->fit;
    struct span *span = hak_span_bins_find(&hak_span_free.sets[set].warm[wish->node], fit);
    if (span == NULL)
        return NULL;
    if (span->lean_count == wish->wished_count)
        fit.count = wish->wished_count;
    return hak_span_free_carve(span, hak_span_place(span, fit), fit.count);
}

/* What is too short on its own, with clean memory next to it. */
static struct span *take_mixed(const struct wish *wish, uint32_t set)
{
    struct span *span = NULL;
    if (wish->fit.alignment != 1)
        return NULL;
    if (set != 0)
        span = hak_span_free_take_mixed(wish->fit.count, set, wish->node);
    return span != NULL ? span : hak_span_free_take_mixed(wish->fit.count, 0, wish->node);
}

/* Memory that becomes the node's by being touched. */
static struct span *take_clean(const struct wish *wish)
{
    struct span_fit fit = wish->fit;
    fit.count = wish->wished_count;
    struct span *span = hak_span_free_take(&hak_span_free.clean, fit);
    if (span != NULL)
        span->node = wish->node;
    return span;
}

/* Warm memory of other nodes: rather than more memory. */
static struct span *take_far(const struct wish *wish, struct span_set *set)
{
    struct span *span = NULL;
    uint32_t nodes = set->warm_nodes & ~(1u << wish->node);
    for (; span == NULL && nodes != 0; nodes &= nodes - 1)
        span = hak_span_free_take(&set->warm[hak_bit_lowest(nodes)], wish->fit);
    if (span != NULL)
        hak_counter_add(&hak_stat_globals.spans_far, 1);
    return span;
}

/* Tells the big cache how much of a served span was warm. Under SPAN. */
HAK_INLINE void note_served(const struct span *span, uint64_t now_ms, size_t warm_bytes)
{
    struct big_serve serve = {now_ms, span->freed_ms, hak_span_free_warm_bytes() + warm_bytes,
                              span->count, (uint32_t)(warm_bytes >> HAK_GRANULE_SHIFT)};
    hak_big_cache_served(&serve);
}

/* The same for a span of a set, under its lock: what the log would not price is only counted. */
static void note_served_by(struct span_set *set, const struct span *span, uint64_t now_ms)
{
    hak_counter_add(&set->take_count, 1);
    if (HAK_LIKELY(hak_big_cache_is_free(span->freed_ms, now_ms))) {
        hak_counter_add(&set->served_count, 1);
        hak_counter_add(&set->served_bytes, hak_span_bytes(span));
        return;
    }
    hak_span_lock();
    note_served(span, now_ms, hak_span_bytes(span));
    hak_span_unlock();
}

/* Lengthens the span by clean memory, if that is what follows it. Under SPAN. */
static void extend_clean(struct span *span, uint32_t count)
{
    uint32_t more = count - span->count;
    struct span *behind = hak_span_free_at((size_t)span->first + span->count, 0);
    if (behind != NULL && behind->state == SPAN_CLEAN && behind->count >= more)
        hak_span_free_append(span, behind, more);
}

static void begin_use(struct span *span, const struct wish *wish, bool *is_zero)
{
    span->lean_count = span->count > wish->fit.count ? span->count : 0;
    span->set = (uint16_t)wish->set;
    *is_zero = span->state == SPAN_CLEAN;
    span->state = SPAN_USED;
}

/* Of the set's warm spans, whose lock is held; not set 0. It is given. */
static struct span *take_and_unlock(const struct wish *wish, uint32_t set, bool *is_zero)
{
    hak_span_free_start(set);
    struct span *span = take_warm(wish, set);
    if (span != NULL) {
        note_served_by(&hak_span_free.sets[set], span, wish->now_ms);
        if (HAK_UNLIKELY(span->count < wish->wished_count)) {
            hak_span_lock();
            extend_clean(span, wish->wished_count);
            hak_span_unlock();
        }
        begin_use(span, wish, is_zero);
    }
    hak_span_unlock_set(set);
    return span;
}

static struct span *take_own(const struct wish *wish, bool *is_zero)
{
    if (HAK_LIKELY(wish->set == 0))
        return NULL;
    hak_span_lock_set(wish->set);
    return take_and_unlock(wish, wish->set, is_zero);
}

/* Of set 0, and of another one or 0. */
static size_t warm_bytes_of(uint32_t set)
{
    size_t bytes = hak_load_relaxed(&hak_span_free.sets[0].warm_bytes);
    return set == 0 ? bytes : bytes + hak_load_relaxed(&hak_span_free.sets[set].warm_bytes);
}

/* Where no warm span of the node fits. */
static struct span *take_more(const struct wish *wish, uint32_t set)
{
    struct span *span = take_mixed(wish, set);
    if (span == NULL)
        span = take_clean(wish);
    if (span == NULL)
        span = take_far(wish, &hak_span_free.sets[0]);
    if (span == NULL && set != 0)
        span = take_far(wish, &hak_span_free.sets[set]);
    return span;
}

/* From set 0; in the last attempt also of memory that nobody has used. */
HAK_INLINE struct span *take_common(const struct wish *wish, bool is_last, bool *is_zero)
{
    uint32_t set = is_last ? wish->set : 0;
    if (set != 0)
        hak_span_lock_set(set);
    hak_span_lock();
    hak_span_free_start(0);
    size_t warm_bytes = warm_bytes_of(set);
    struct span *span = take_warm(wish, 0);
    if (span == NULL && is_last)
        span = take_more(wish, set);
    if (span != NULL) {
        note_served(span, wish->now_ms, warm_bytes - warm_bytes_of(set));
        if (HAK_UNLIKELY(span->count < wish->wished_count))
            extend_clean(span, wish->wished_count);
        begin_use(span, wish, is_zero);
    }
    hak_span_unlock();
    if (set != 0)
        hak_span_unlock_set(set);
    return span;
}

/* Whether the set may have what is asked for: a hint. */
static bool may_have(const struct wish *wish, uint32_t set)
{
    return set != wish->set && hak_load_relaxed(&hak_span_free.sets[set].warm_bytes) >=
                                   (size_t)wish->fit.count << HAK_GRANULE_SHIFT;
}

/* From other sets, if nobody is in them: rather than more memory. */
static struct span *take_others(const struct wish *wish, bool *is_zero)
{
    struct span *span = NULL;
    for (uint32_t set = 1; span == NULL && set < hak_span_set_count(); set++)
        if (may_have(wish, set) && hak_lock_try(&hak_span_locks[set].lock))
            span = take_and_unlock(wish, set, is_zero);
    return span;
}

/* A set's spans are moved under its lock and SPAN. */
bool hak_span_join_sets(void)
{
    bool is_any = false;
    for (uint32_t set = 1; set < hak_span_set_count(); set++) {
        if (hak_load_relaxed(&hak_span_free.sets[set].warm_bytes) == 0)
            continue;
        hak_span_lock_set(set);
        hak_span_lock();
        hak_span_free_start(0);
        is_any |= hak_span_free_drain(set);
        hak_span_unlock();
        hak_span_unlock_set(set);
    }
    return is_any;
}

static bool have_sets_any(void)
{
    for (uint32_t set = hak_span_set_count() - 1; HAK_UNLIKELY(set != 0); set--)
        if (hak_load_relaxed(&hak_span_free.sets[set].warm_bytes) != 0)
            return true;
    return false;
}

/* Where long requests are as frequent as others, sets are emptied as fast as they fill. */
static struct {
    _Atomic uint64_t served; /* by sets, when they were last emptied for a long request */
    _Atomic uint32_t misses; /* times when sets had served too little since then, beyond others */
    _Atomic uint64_t pause;  /* waits for SPAN until sets are tried again */
} worth = {.pause = PAUSE_WAITS};

uint64_t hak_span_sets_served(uint64_t *bytes)
{
    uint64_t count = 0;
    *bytes = 0;
    for (uint32_t set = 1; set < hak_span_set_count(); set++) {
        count += hak_load_relaxed(&hak_span_free.sets[set].served_count);
        *bytes += hak_load_relaxed(&hak_span_free.sets[set].served_bytes);
    }
    return count;
}

/* A race loses one look. */
static void judge_sets(void)
{
    uint64_t served = 0;
    if (!hak_span_has_sets()) /* what was left of them */
        return;
    for (uint32_t set = 1; set < hak_span_set_count(); set++)
        served += hak_load_relaxed(&hak_span_free.sets[set].take_count);
    uint32_t misses = hak_load_relaxed(&worth.misses);
    bool is_miss = served - hak_load_relaxed(&worth.served) < SERVED_LEAST;
    misses = is_miss ? misses + 1 : (uint32_t)hak_excess(misses, 1);
    hak_store_relaxed(&worth.served, served);
    if (misses >= MISSES_MOST) {
        uint64_t pause = hak_load_relaxed(&worth.pause);
        hak_store_relaxed(&hak_span_set_waits,
                          hak_load_relaxed(&hak_lock_waits[HAK_LOCK_SPAN].count) + pause);
        hak_store_relaxed(&worth.pause, hak_least(2 * pause, PAUSE_WAITS_MOST));
        misses = 0;
    }
    hak_store_relaxed(&worth.misses, misses);
}

struct span *hak_span_take_free(struct span_fit fit, uint32_t wished_count, uint32_t set,
                                bool *is_zero)
{
    const struct wish wish = {fit, wished_count, set, hak_span_own_node(), hak_os_clock_ms()};
    struct span *span = take_own(&wish, is_zero);
    if (span == NULL && have_sets_any()) {
        span = take_common(&wish, false, is_zero);
        if (span == NULL && fit.count <= HAK_SPAN_SET_GRANULES_MOST)
            span = take_others(&wish, is_zero);
        else if (span == NULL && hak_span_join_sets())
            judge_sets();
    }
    return span != NULL ? span : take_common(&wish, true, is_zero);
}
