/* SPDX-License-Identifier: MIT */
/* stats/decision.h - what slow paths decided last.
 *
 * Owns        HAK_DECISION_TABLE and a small ring of the last decisions of all threads.
 * Invariants  nothing is noted on the hot path, and nothing waits: a slot's two words are written
 *             one after the other, so a reader may see the time of one decision with another.
 * Threads     any; relaxed, nothing is ordered by it. In a signal handler, too.
 * Tests       tests/unit/stats/decision_test.c
 */
#ifndef HAK_STATS_DECISION_H
#define HAK_STATS_DECISION_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/os.h"
#include "os/probe.h"

/* name, what the number is, meaning */
#define HAK_DECISION_TABLE(X)                                                                      \
    X(purge, "bytes", "free memory went back to the kernel")                                       \
    X(sweep, "bytes", "pages of sparse slabs went back to the kernel")                             \
    X(trim, "bytes", "everything free went back, because it was asked for or memory was out")      \
    X(fresh_superslab, "bytes", "a superslab was begun, for blocks of so many bytes")              \
    X(huge_superslab, "bytes", "huge pages were asked for it")                                     \
    X(steal_slab, "bytes", "a slab was taken from another heap")                                   \
    X(drain_bin, "bytes", "a bin of such blocks was emptied, its slabs being sparse")              \
    X(make_heap, "heap", "one more heap was made")                                                 \
    X(lose_heap, "heap", "it was given up")                                                        \
    X(lose_cache, "bytes", "a cache of a thread that could hold so many was given up")             \
    X(out_of_memory, "bytes", "a request for so many was refused")

enum decision_kind {
    DECISION_NONE,
#define X(name, unit, meaning) DECISION_##name,
    HAK_DECISION_TABLE(X)
#undef X
        DECISION_COUNT
};

#define HAK_DECISIONS_KEPT 32
#define HAK_DECISION_KIND_SHIFT 56

/* What is kept of one: when, by the clock of hak_os_clock_ms, and kind << 56 | number. */
struct decision {
    uint64_t when_ms;
    uint64_t what;
};

struct decision_ring {
    _Atomic uint64_t count; /* decisions so far */
    struct {
        _Atomic uint64_t when_ms;
        _Atomic uint64_t what;
    } slots[HAK_DECISIONS_KEPT];
};
extern struct decision_ring hak_decisions;

HAK_INLINE void hak_decision_note(enum decision_kind kind, uint64_t number)
{
    uint64_t at = hak_fetch_add_relaxed(&hak_decisions.count, 1) % HAK_DECISIONS_KEPT;
    hak_store_relaxed(&hak_decisions.slots[at].when_ms, hak_os_clock_ms());
    hak_store_relaxed(&hak_decisions.slots[at].what,
                      (uint64_t)kind << HAK_DECISION_KIND_SHIFT | number);
}

#define hak_decide(kind, number)                                                                   \
    do {                                                                                           \
        uint64_t number_ = (uint64_t)(number);                                                     \
        hak_probe(kind, number_);                                                                  \
        hak_decision_note(DECISION_##kind, number_);                                               \
    } while (0)

/* Copies the last decisions to `to`, newest first, DECISION_NONE behind them. */
void hak_decisions_copy(struct decision to[HAK_DECISIONS_KEPT]);

HAK_INLINE enum decision_kind hak_decision_kind(struct decision decision)
{
    return (enum decision_kind)(decision.what >> HAK_DECISION_KIND_SHIFT);
}

HAK_INLINE uint64_t hak_decision_number(struct decision decision)
{
    return decision.what & (((uint64_t)1 << HAK_DECISION_KIND_SHIFT) - 1);
}

/* "purge", "bytes"; "" for what is no kind. */
const char *hak_decision_name(enum decision_kind kind);
const char *hak_decision_unit(enum decision_kind kind);

#endif
