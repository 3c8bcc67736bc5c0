/* SPDX-License-Identifier: MIT */
#include "span/big_cache.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "policy/policy_table.h"
#include "span/span_lock.h"
#include "stats/counters.h"

/* The slack is judged after so long, when it is doubled; then it must have earned half its price,
 * and twice its price before: it does not change to and fro. */
#define SLACK_JUDGED_MS 1000u
/* One unlucky span proves nothing. */
#define SLACK_SPANS 8u

HAK_AT_HAND static struct {
    HAK_CACHE_ALIGNED struct keep_log keep;
    uint64_t earned;       /* granules that the doubled slack saved, or would have saved */
    uint32_t earned_count; /* by so many spans */
    uint64_t judged_ms;
} log_of;
static _Atomic bool is_slack_doubled;
static _Atomic size_t last_peak_bytes;
static _Atomic size_t last_live_bytes;

/* Read by each free of a large block, written a few times in all. */
HAK_AT_HAND static struct {
    HAK_CACHE_ALIGNED _Atomic bool is_needed;
    _Atomic uint32_t longest_given_up;
} early;

bool hak_big_cache_is_wished(void)
{
    return hak_policy_read(free_policy) == POLICY_FREE_KEEP ||
           hak_policy_read(decay_ms) >= HAK_CONF_NEVER_MS || hak_policy_read(prewarm_bytes) != 0;
}

bool hak_big_cache_is_needed(void)
{
    return HAK_LIKELY(hak_load_relaxed(&early.is_needed)) || hak_big_cache_is_wished();
}

void hak_big_cache_note_given_up(uint32_t count, bool is_gone)
{
    if (!is_gone)
        hak_store_relaxed(&early.is_needed, true);
    else if (count > hak_load_relaxed(&early.longest_given_up))
        hak_store_relaxed(&early.longest_given_up, count); /* a race may lose the longer one */
}

void hak_big_cache_note_wanted(uint32_t count)
{
    if (count <= hak_load_relaxed(&early.longest_given_up))
        hak_store_relaxed(&early.is_needed, true);
}

static size_t slack_bytes(size_t peak_bytes)
{
    size_t bytes = hak_most(peak_bytes / 100 * hak_policy_read(big_cache_slack_percent),
                            hak_policy_read(big_cache_slack_bytes));
    return bytes * hak_policy_read(big_cache_scale_percent) / 100;
}

size_t hak_big_cache_most_bytes(size_t live_bytes, size_t peak_bytes)
{
    size_t slack = slack_bytes(peak_bytes);
    hak_store_relaxed(&last_peak_bytes, peak_bytes);
    hak_store_relaxed(&last_live_bytes, live_bytes);
    if (HAK_UNLIKELY(!hak_load_relaxed(&early.is_needed)) &&
        peak_bytes > hak_policy_read(big_cache_from_bytes))
        hak_store_relaxed(&early.is_needed, true);
    if (hak_load_relaxed(&is_slack_doubled))
        slack *= 2;
    size_t bytes = peak_bytes + slack - hak_least(live_bytes, peak_bytes);
    if (hak_policy_read(free_policy) == POLICY_FREE_KEEP)
        bytes = SIZE_MAX;
    return hak_least(hak_policy_read(big_cache_bytes),
                     hak_most(bytes, hak_policy_read(prewarm_bytes)));
}

uint64_t hak_big_cache_keep_ms(void)
{
    return hak_keep_ms(&log_of.keep);
}

void hak_big_cache_learned(struct keep_evidence *seen)
{
    hak_span_lock();
    hak_keep_read(&log_of.keep, seen);
    hak_span_unlock();
}

bool hak_big_cache_begin(const struct keep_evidence *seen)
{
    hak_span_lock();
    bool has_begun = hak_keep_begin(&log_of.keep, seen);
    hak_span_unlock();
    return has_begun;
}

/* Doubles the slack, or undoes that, by its earnings since the last judgement. */
static void judge_slack(uint64_t now_ms)
{
    bool is_doubled = hak_load_relaxed(&is_slack_doubled);
    uint64_t extra = slack_bytes(hak_load_relaxed(&last_peak_bytes)) >> HAK_GRANULE_SHIFT;
    uint64_t elapsed_ms = hak_excess(now_ms, log_of.judged_ms);
    uint64_t earned = log_of.earned * hak_policy_read(big_fault_ms);
    bool is_quiet = elapsed_ms > 2 * SLACK_JUDGED_MS; /* what was kept has aged meanwhile */
    bool is_proven = log_of.earned_count >= SLACK_SPANS && !is_quiet;
    if (!is_doubled && is_proven && earned > 2 * extra * SLACK_JUDGED_MS)
        hak_store_relaxed(&is_slack_doubled, true);
    else if (elapsed_ms < SLACK_JUDGED_MS)
        return;
    else if (is_doubled && !is_quiet && earned < extra * elapsed_ms / 2)
        hak_store_relaxed(&is_slack_doubled, false);
    log_of.earned = 0;
    log_of.earned_count = 0;
    log_of.judged_ms = now_ms;
}

/* So much clean memory was served. */
static void miss(uint32_t count, uint64_t now_ms)
{
    struct keep_ghost ghost;
    if (!hak_keep_missed(&log_of.keep, count, now_ms, hak_policy_read(big_cache_episodes), &ghost))
        return;
    hak_counter_add(&hak_stat_globals.spans_missed_bytes, (uint64_t)count << HAK_GRANULE_SHIFT);
    if (ghost.is_evicted && !hak_load_relaxed(&is_slack_doubled)) {
        log_of.earned += count;
        log_of.earned_count++;
        judge_slack(now_ms);
    }
}

/* Credits the doubled slack with the warm memory beyond the single slack. */
static void credit_slack(const struct big_serve *serve)
{
    size_t peak = hak_load_relaxed(&last_peak_bytes);
    size_t most = peak + slack_bytes(peak);
    size_t held = hak_load_relaxed(&last_live_bytes) + serve->warm_bytes;
    if (held > most)
        log_of.earned += hak_least(serve->warm_count, (held - most) >> HAK_GRANULE_SHIFT);
    judge_slack(serve->now_ms);
}

bool hak_big_cache_is_free(uint64_t freed_ms, uint64_t now_ms)
{
    return hak_excess(now_ms, freed_ms) == 0 && HAK_LIKELY(!hak_load_relaxed(&is_slack_doubled));
}

/* The counters are written under the lock alone. */
void hak_big_cache_served(const struct big_serve *serve)
{
    uint32_t clean_count = serve->count - serve->warm_count;
    if (serve->warm_count != 0) {
        hak_counter_add(&hak_stat_globals.spans_reused, 1);
        hak_counter_add(&hak_stat_globals.spans_reused_bytes,
                        (uint64_t)serve->warm_count << HAK_GRANULE_SHIFT);
        if (hak_load_relaxed(&is_slack_doubled))
            credit_slack(serve);
    } else {
        hak_counter_add(&hak_stat_globals.spans_fresh, 1);
    }
    uint64_t idle_ms = hak_excess(serve->now_ms, serve->freed_ms); /* clocks of two threads */
    if (clean_count != 0)
        miss(clean_count, serve->now_ms);
    else
        hak_keep_came_back(&log_of.keep, serve->count, idle_ms,
                           hak_policy_read(big_cache_episodes));
}

void hak_big_cache_left(uint32_t count, uint64_t freed_ms, uint64_t now_ms, enum big_leave why)
{
    if (why == LEAVES_EVICTED)
        hak_counter_add(&hak_stat_globals.spans_evicted, 1);
    if (why == LEAVES_TRIMMED)
        return;
    const struct keep_ghost ghost = {freed_ms, count, why == LEAVES_EVICTED};
    hak_keep_left(&log_of.keep, &ghost, now_ms, hak_policy_read(big_cache_episodes));
}
