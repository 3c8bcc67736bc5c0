/* SPDX-License-Identifier: MIT */
/* stats/event_log.h - the latest events of slow paths.
 *
 * Owns        HAK_EVENT_TABLE and a small ring of the last events of all threads.
 * Invariants  nothing is noted on the hot path, and nothing waits: a slot's two words are written
 *             one after the other, so a reader may see the time of one event with another.
 * Threads     any; relaxed, nothing is ordered by it. In a signal handler, too.
 * Tests       tests/unit/stats/event_log_test.c
 */
#ifndef HAK_STATS_EVENT_LOG_H
#define HAK_STATS_EVENT_LOG_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/os.h"
#include "os/probe.h"

/* name, what the number is, meaning */
#define HAK_EVENT_TABLE(X)                                                                         \
    X(purge, "bytes", "free memory was returned to the kernel")                                    \
    X(sweep, "bytes", "pages of sparse slabs were returned to the kernel")                         \
    X(trim, "bytes", "all free memory was returned, on request or because memory ran out")         \
    X(fresh_superslab, "bytes", "a superslab was added, for blocks of this size")                  \
    X(huge_superslab, "bytes",                                                                     \
      "huge pages were requested for a superslab, for blocks of this size")                        \
    X(steal_slab, "bytes", "a slab was taken from another heap, with blocks of this size")         \
    X(drain_bin, "bytes",                                                                          \
      "a bin of blocks of this size was emptied, because their slabs were sparse")                 \
    X(make_heap, "heap", "a heap was created")                                                     \
    X(lose_heap, "heap", "a heap was abandoned")                                                   \
    X(lose_cache, "bytes", "a thread's cache of this capacity was abandoned")                      \
    X(out_of_memory, "bytes", "a request of this size was refused")

enum event_kind {
    EVENT_NONE,
#define X(name, unit, meaning) EVENT_##name,
    HAK_EVENT_TABLE(X)
#undef X
        EVENT_COUNT
};

#define HAK_EVENTS_KEPT 32
#define HAK_EVENT_KIND_SHIFT 56

/* What is kept of one: when, by the clock of hak_os_clock_ms, and kind << 56 | number. */
struct event {
    uint64_t when_ms;
    uint64_t what;
};

struct event_ring {
    _Atomic uint64_t count; /* events so far */
    struct {
        _Atomic uint64_t when_ms;
        _Atomic uint64_t what;
    } slots[HAK_EVENTS_KEPT];
};
extern struct event_ring hak_event_ring;

HAK_INLINE void hak_event_note(enum event_kind kind, uint64_t number)
{
    uint64_t at = hak_fetch_add_relaxed(&hak_event_ring.count, 1) % HAK_EVENTS_KEPT;
    hak_store_relaxed(&hak_event_ring.slots[at].when_ms, hak_os_clock_ms());
    hak_store_relaxed(&hak_event_ring.slots[at].what,
                      (uint64_t)kind << HAK_EVENT_KIND_SHIFT | number);
}

#define hak_event_log(kind, number)                                                                \
    do {                                                                                           \
        uint64_t number_ = (uint64_t)(number);                                                     \
        hak_probe(kind, number_);                                                                  \
        hak_event_note(EVENT_##kind, number_);                                                     \
    } while (0)

/* Copies the last events to `to`, newest first, EVENT_NONE behind them. */
void hak_events_copy(struct event to[HAK_EVENTS_KEPT]);

HAK_INLINE enum event_kind hak_event_kind(struct event event)
{
    return (enum event_kind)(event.what >> HAK_EVENT_KIND_SHIFT);
}

HAK_INLINE uint64_t hak_event_number(struct event event)
{
    return event.what & (((uint64_t)1 << HAK_EVENT_KIND_SHIFT) - 1);
}

/* "purge", "bytes"; "" for what is no kind. */
const char *hak_event_name(enum event_kind kind);
const char *hak_event_unit(enum event_kind kind);

#endif
