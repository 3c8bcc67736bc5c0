/* SPDX-License-Identifier: MIT */
#include "learn/keep_time.h"

#include "base/bits.h"
#include "base/limits.h"
#include "learn/trial.h"
#include "policy/policy_table.h"

static const uint32_t sixteenths[HAK_KEEP_CHOICES] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
#define STATIC_CHOICE 4u
#define LONGEST_SHARE (sixteenths[HAK_KEEP_CHOICES - 1])
/* Another keep time must have been cheaper by a tenth. */
#define BETTER_PERCENT 90u
/* The cost may exceed that of the best fixed keep time by this share. */
#define PAID_PERCENT 102u
/* The sums that say so count half after so many times the episodes of a choice: a load that flips
 * faster than a choice follows is in them many times. */
#define LONG_VIEW 64u
/* A keep time longer than `decay` must save so much of the process's time. */
#define WORTH_SHARE 100u
#define GRANULE_FAULT_NS (HAK_FAULT_NS * (HAK_GRANULE_BYTES / HAK_PAGE_BYTES_LEAST))
/* Memory that was not needed again within this time, or the longest keep time, is forgotten. */
#define GONE_MS 1000u

_Atomic bool hak_keep_asks;
_Atomic uint64_t hak_keep_busy_ns;

static uint64_t keep_ms_from(uint64_t decay, uint32_t choice)
{
    return choice == STATIC_CHOICE || decay > UINT64_MAX / LONGEST_SHARE
               ? decay
               : decay * sixteenths[choice] / 16;
}

static uint64_t keep_ms_of(uint32_t choice)
{
    return keep_ms_from(hak_policy_read(decay_ms), choice);
}

static uint32_t choice_of(const struct keep_log *log)
{
    uint32_t choice = hak_load_relaxed(&log->choice);
    return choice == 0 ? STATIC_CHOICE : choice - 1;
}

uint64_t hak_keep_ms(const struct keep_log *log)
{
    return keep_ms_of(hak_policy_read(learn_acts) == 0 ? STATIC_CHOICE : choice_of(log));
}

void hak_keep_read(const struct keep_log *log, struct keep_evidence *seen)
{
    seen->decay_ms = hak_policy_read(decay_ms);
    seen->fault_ms = hak_policy_read(big_fault_ms);
    seen->episodes = log->episodes;
    seen->choice = hak_load_relaxed(&log->choice);
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
        seen->costs[i] = log->costs[i];
}

bool hak_keep_begin(struct keep_log *log, const struct keep_evidence *seen)
{
    if (seen->episodes == 0 || seen->choice > HAK_KEEP_CHOICES ||
        seen->decay_ms != hak_policy_read(decay_ms) ||
        seen->fault_ms != hak_policy_read(big_fault_ms))
        return false;
    log->episodes = seen->episodes;
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
        log->costs[i] = seen->costs[i];
    hak_store_relaxed(&log->choice, seen->choice);
    return true;
}

uint64_t hak_keep_evidence_ms(const struct keep_evidence *seen)
{
    return keep_ms_from(seen->decay_ms, seen->choice == 0 ? STATIC_CHOICE : seen->choice - 1);
}

static uint32_t cheapest(const uint64_t costs[HAK_KEEP_CHOICES])
{
    uint32_t best = STATIC_CHOICE;
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
        if (costs[i] < costs[best])
            best = i;
    return best;
}

/* By recent evidence: a choice that is cheaper by a tenth, and `decay` if the current one costs
 * more than that. */
static uint32_t choice_by_now(const struct keep_log *log)
{
    uint32_t now = choice_of(log), best = cheapest(log->costs);
    if (log->costs[best] < log->costs[now] / 100 * BETTER_PERCENT)
        return best;
    return log->costs[now] <= log->costs[STATIC_CHOICE] ? now : STATIC_CHOICE;
}

/* A load that flips as fast as choices follow makes each of them wrong: then the best one of the
 * long view holds. */
static uint32_t choice_by_regret(const struct keep_log *log, uint32_t choice)
{
    uint32_t best = cheapest(log->long_costs);
    return log->paid / PAID_PERCENT > log->long_costs[best] / 100 ? best : choice;
}

/* The savings of the choice over `decay`, as processor time. */
static uint64_t saved_ns(const uint64_t costs[HAK_KEEP_CHOICES], uint32_t choice)
{
    uint64_t saved = hak_excess(costs[STATIC_CHOICE], costs[choice]);
    return saved / hak_most(hak_policy_read(big_fault_ms), 1) * GRANULE_FAULT_NS;
}

/* Whether the savings matter, since memory that is held for longer does. The process's time is
 * unknown where it cannot be read. */
static bool is_worth(const struct keep_log *log, uint32_t choice)
{
    return choice <= STATIC_CHOICE || saved_ns(log->costs, choice) >= log->busy_ns / WORTH_SHARE ||
           (log->long_busy_ns != 0 &&
            saved_ns(log->long_costs, choice) >= log->long_busy_ns / WORTH_SHARE);
}

/* Adds the process's time since the last choice. */
static void note_busy(struct keep_log *log)
{
    uint64_t now_ns = hak_load_relaxed(&hak_keep_busy_ns);
    uint64_t busy_ns = hak_excess(now_ns, log->busy_seen_ns);
    log->busy_ns += busy_ns;
    log->long_busy_ns += log->choices == 0 ? 0 : busy_ns;
    log->busy_seen_ns = now_ns;
}

static void halve_long_view(struct keep_log *log)
{
    log->long_busy_ns /= 2;
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
        log->long_costs[i] /= 2;
    log->paid /= 2;
    log->choices /= 2;
}

/* Takes the cheapest keep time once there is enough evidence; older evidence then counts half. */
static void choose(struct keep_log *log, uint64_t episodes)
{
    if (++log->episodes < episodes)
        return;
    note_busy(log);
    uint32_t choice = choice_by_regret(log, choice_by_now(log));
    if (!is_worth(log, choice))
        choice = STATIC_CHOICE;
    if (choice != choice_of(log))
        hak_store_relaxed(&log->choice, choice + 1);
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
        log->costs[i] /= 2;
    log->episodes /= 2;
    log->busy_ns /= 2;
    if (++log->choices == LONG_VIEW)
        halve_long_view(log);
}

/* Prices one episode: `count` granules came back after `idle_ms`, UINT64_MAX: never. */
static void price(struct keep_log *log, uint32_t count, uint64_t idle_ms, uint64_t episodes)
{
    uint64_t again_ms = idle_ms == UINT64_MAX ? 0 : hak_policy_read(big_fault_ms);
    uint32_t held = choice_of(log);
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++) {
        uint64_t keep_ms = keep_ms_of(i);
        uint64_t cost = count * (idle_ms <= keep_ms ? idle_ms : keep_ms + again_ms);
        log->costs[i] += cost;
        if (log->choices == 0)
            continue;
        log->long_costs[i] += cost;
        log->paid += i == held ? cost : 0;
    }
    choose(log, episodes);
}

static uint64_t gone_ms(void)
{
    uint64_t longest_ms = keep_ms_of(HAK_KEEP_CHOICES - 1);
    return longest_ms > UINT64_MAX / LONGEST_SHARE ? GONE_MS : hak_most(longest_ms, GONE_MS);
}

static void lay(struct keep_log *log, struct keep_ghost *ghost, uint64_t episodes)
{
    uint32_t count = ghost->count;
    ghost->count = 0;
    price(log, count, UINT64_MAX, episodes);
}

/* The shortest ghost that is long enough: memory that would have served if kept. */
static struct keep_ghost *ghost_for(struct keep_log *log, uint32_t count, uint64_t now_ms,
                                    uint64_t episodes)
{
    struct keep_ghost *best = NULL;
    uint64_t gone = gone_ms();
    for (uint32_t i = 0; i < HAK_KEEP_GHOSTS; i++) {
        struct keep_ghost *ghost = &log->ghosts[i];
        if (ghost->count != 0 && hak_excess(now_ms, ghost->freed_ms) > gone)
            lay(log, ghost, episodes);
        else if (ghost->count >= count && (best == NULL || ghost->count < best->count))
            best = ghost;
    }
    return best;
}

void hak_keep_came_back(struct keep_log *log, uint32_t count, uint64_t idle_ms, uint64_t episodes)
{
    if (idle_ms != 0) /* else all keep times cost the same: nothing */
        price(log, count, idle_ms, episodes);
}

bool hak_keep_missed(struct keep_log *log, uint32_t count, uint64_t now_ms, uint64_t episodes,
                     struct keep_ghost *what)
{
    if (log->next == 0) /* nothing ever left */
        return false;
    struct keep_ghost *ghost = ghost_for(log, count, now_ms, episodes);
    if (ghost == NULL)
        return false;
    *what = *ghost;
    ghost->count -= count;
    price(log, count, hak_excess(now_ms, ghost->freed_ms), episodes);
    return true;
}

void hak_keep_left(struct keep_log *log, const struct keep_ghost *ghost, uint64_t now_ms,
                   uint64_t episodes)
{
    hak_store_relaxed(&hak_keep_asks, true);
    if (hak_excess(now_ms, ghost->freed_ms) > gone_ms()) {
        price(log, ghost->count, UINT64_MAX, episodes);
        return;
    }
    struct keep_ghost *place = &log->ghosts[log->next++ % HAK_KEEP_GHOSTS];
    if (place->count != 0)
        lay(log, place, episodes);
    *place = *ghost;
}
