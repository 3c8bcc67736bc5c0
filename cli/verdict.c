/* SPDX-License-Identifier: MIT */
#include "verdict.h"

#include "amount.h"
#include "stats/summary.h"

#include <inttypes.h>
#include <stdio.h>

/* A smaller share than one in this many is not mentioned. */
#define SMALL_SHARE 10
/* Memory outside hakmem is mentioned if it is this many times hakmem's, and this much. */
#define BESIDE_TIMES 2
#define BESIDE_BYTES ((uint64_t)8 << 20)
/* A class is in the named range if it has this share of the largest one. */
#define RANGE_SHARE 4
/* The bound of a cache with price=compact. */
#define COMPACT_CACHE_BYTES ((uint64_t)256 << 10)

#define USUAL_DECAY_MS 125u

static unsigned percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (unsigned)((double)part * 100 / (double)whole + 0.5);
}

static uint64_t free_bytes(const struct snapshot_class *of)
{
    return of->free_blocks * of->block_bytes;
}

static uint64_t live_bytes(const struct snapshot_class *of)
{
    return of->live_blocks * of->block_bytes;
}

/* The class that has most by `count`, and its neighbours that have about as much. */
static void find_range(const struct snapshot *of, uint64_t (*count)(const struct snapshot_class *),
                       uint32_t *first, uint32_t *last)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < of->class_count; i++)
        if (count(&of->classes[i]) > count(&of->classes[most]))
            most = i;
    *first = *last = most;
    uint64_t enough = count(&of->classes[most]) / RANGE_SHARE + 1;
    while (*first > 0 && count(&of->classes[*first - 1]) >= enough)
        --*first;
    while (*last + 1 < of->class_count && count(&of->classes[*last + 1]) >= enough)
        ++*last;
}

static void write_range(char *text, size_t bytes, const struct snapshot *of,
                        uint64_t (*count)(const struct snapshot_class *))
{
    uint32_t first, last;
    find_range(of, count, &first, &last);
    struct amount from = bytes_of(of->classes[first].block_bytes);
    struct amount to = bytes_of(of->classes[last].block_bytes);
    if (first == last)
        snprintf(text, bytes, "%s", from.text);
    else
        snprintf(text, bytes, "%s to %s", from.text, to.text);
}

static void write_live(char *line, size_t line_bytes, const struct snapshot *of, uint64_t held)
{
    char range[64];
    unsigned share = percent(of->live_bytes, held);
    if (of->large_live_bytes > of->small_live_bytes || of->class_count == 0) {
        snprintf(line, line_bytes, "%u %% of what is held is live, most of it in blocks above 128K",
                 share);
        return;
    }
    write_range(range, sizeof range, of, live_bytes);
    snprintf(line, line_bytes, "%u %% of what is held is live, most of it in blocks of %s", share,
             range);
}

/* The part, and the option that would make it smaller. */
static void write_part(char *line, size_t line_bytes, const struct target *target,
                       enum held_part part, unsigned share)
{
    const struct snapshot *of = &target->page.snapshot;
    char range[64] = "";
    switch (part) {
    case HELD_FREE:
        write_range(range, sizeof range, of, free_bytes);
        snprintf(line, line_bytes,
                 "%u %% of what is held is free space in slabs of blocks of %s; hakmem ctl %d trim "
                 "returns the pages of it that hold no live block",
                 share, range, target->pid);
        return;
    case HELD_CACHES:
        snprintf(line, line_bytes, "%u %% of what is held lies free in caches; %s", share,
                 of->policy_thread_cache_bytes > COMPACT_CACHE_BYTES
                     ? "price=compact would return most"
                     : "they are as small as price=compact makes them");
        return;
    case HELD_KEPT:
        snprintf(line, line_bytes,
                 "%u %% of what is held is kept for reuse; hakmem ctl %d trim returns "
                 "it now%s",
                 share, target->pid,
                 of->policy_decay_ms > USUAL_DECAY_MS ? ", decay=125ms by itself" : "");
        return;
    case HELD_RETURNING:
        snprintf(line, line_bytes,
                 "%u %% of what is held was freed and is in quarantine or not collected yet",
                 share);
        return;
    default:
        snprintf(line, line_bytes, "%u %% of what is held is hakmem's metadata", share);
    }
}

void verdict_write(char *line, size_t line_bytes, const struct target *target)
{
    const struct snapshot *of = &target->page.snapshot;
    uint64_t held = hak_held_sum(of), most = 0;
    uint64_t own = target->heap_bytes + target->record_bytes;
    enum held_part part = HELD_LIVE;
    for (int i = HELD_LIVE + 1; i < HELD_COUNT; i++)
        if (hak_held_part(of, (enum held_part)i) > most) {
            part = (enum held_part)i;
            most = hak_held_part(of, part);
        }
    if (!target->has_ended && target->has_smaps && target->other_bytes > BESIDE_BYTES &&
        target->other_bytes / BESIDE_TIMES > own)
        snprintf(line, line_bytes,
                 "%u %% of the resident bytes are not hakmem's: code, stacks and other mappings",
                 percent(target->other_bytes, own + target->other_bytes));
    else if (most < held / SMALL_SHARE || most == 0)
        write_live(line, line_bytes, of, held);
    else
        write_part(line, line_bytes, target, part, percent(most, held));
}
