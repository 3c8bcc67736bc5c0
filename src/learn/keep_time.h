/* SPDX-License-Identifier: MIT */
/* learn/keep_time.h - how long freed memory is worth keeping, computed from how soon it was reused.
 *
 * Owns        struct keep_log: what every keep time would have cost so far, and the ghosts: memory
 *             that was purged recently. The time until memory is needed again does not depend on
 *             the choice, so one log prices all choices, and no trials are needed
 *             (docs/adr/0012-big-cache-that-learns.md).
 * Invariants  an empty log (all zero) keeps for `decay`. A keep time lies between a sixteenth and
 *             16 times of `decay`; where learning is not applied it is `decay`. Kept memory costs
 *             its time; memory that was purged and needed again costs as much as keeping it for
 *             `big_fault_ms`. `decay` is priced like all others: another keep time must be cheaper
 *             by a tenth to be chosen, and stays while it is cheaper at all. The sequence of
 *             choices is priced, too: if it cost a fiftieth more than the best fixed keep time
 *             since choosing began, that one is used (docs/adr/0043-what-is-learned-must-pay.md). A
 *             keep time longer than `decay` must also save a hundredth of the process's time.
 * Threads     writers hold the lock of the log's owner; hak_keep_ms is read without it (relaxed: a
 *             number of policy).
 * Tests       tests/unit/learn/keep_time_test.c, tests/unit/span/big_cache_test.c
 */
#ifndef HAK_LEARN_KEEP_TIME_H
#define HAK_LEARN_KEEP_TIME_H

#include "base/atomic.h"
#include "base/compiler.h"

#define HAK_KEEP_GHOSTS 64u
/* Keep times that are priced: `decay` times 1/16, 1/8, ... 16. */
#define HAK_KEEP_CHOICES 9u

struct keep_ghost {
    uint64_t freed_ms;
    uint32_t count; /* granules; 0: none */
    bool is_evicted;
};

struct keep_log {
    struct keep_ghost ghosts[HAK_KEEP_GHOSTS];
    uint32_t next;
    uint32_t episodes;
    uint64_t costs[HAK_KEEP_CHOICES]; /* in granules times milliseconds */
    _Atomic uint32_t choice;          /* 0: `decay`; else 1 + its index */
    uint32_t choices;                 /* made in the long view; 0: none ever */
    /* The long view, since the first choice: all choices, and those that held. */
    uint64_t long_costs[HAK_KEEP_CHOICES];
    uint64_t paid;
    /* What the process did while these sums were made, and until the last choice. */
    uint64_t busy_ns, long_busy_ns, busy_seen_ns;
};

/* Some memory went back: what the process does is of interest, processor time of all its threads.
 * Written by the tick; 0: it could not be asked. */
extern _Atomic bool hak_keep_asks;
extern _Atomic uint64_t hak_keep_busy_ns;

/* What a log has seen, to begin another one with. Costs are of the keep times that follow from
 * `decay_ms`, at the price `fault_ms`. */
struct keep_evidence {
    uint64_t decay_ms;
    uint64_t fault_ms;
    uint64_t costs[HAK_KEEP_CHOICES];
    uint32_t episodes;
    uint32_t choice;
};

/* How long freed memory stays warm: milliseconds. */
uint64_t hak_keep_ms(const struct keep_log *log);

/* What the log has seen; under its owner's lock, as what follows. */
void hak_keep_read(const struct keep_log *log, struct keep_evidence *seen);

/* Begins with what another log saw; false: it saw nothing, or had another `decay` or price. */
bool hak_keep_begin(struct keep_log *log, const struct keep_evidence *seen);

/* The keep time that evidence stands for: milliseconds. */
uint64_t hak_keep_evidence_ms(const struct keep_evidence *seen);

/* Memory of `count` granules that was kept came back after `idle_ms`. `episodes`: so many episodes
 * are seen before a choice is made (policy). */
void hak_keep_came_back(struct keep_log *log, uint32_t count, uint64_t idle_ms, uint64_t episodes);

/* Memory of `count` granules was returned to the kernel; `is_evicted`: not because of its age. */
void hak_keep_left(struct keep_log *log, const struct keep_ghost *ghost, uint64_t now_ms,
                   uint64_t episodes);

/* Untouched memory of `count` granules was served. True if memory that left lately would have
 * served; what that was. */
bool hak_keep_missed(struct keep_log *log, uint32_t count, uint64_t now_ms, uint64_t episodes,
                     struct keep_ghost *what);

#endif
