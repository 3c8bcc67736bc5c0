/* SPDX-License-Identifier: MIT */
/* cache/gate.h - how a stranger enters a heap that belongs to a running thread.
 *
 * Owns        struct gate. Every slow function that changes a heap runs with its gate held.
 * Invariants  never both: the owner inside its gate, and a stranger holding the claim with the gate
 *             seen open. The owner's way in is a store, a compiler barrier and a load.
 * Argument    The bad interleaving is the owner's store of `held` waiting in its store buffer while
 *             it loads claimed == 0, and the stranger reading held == 0. The stranger's membarrier
 *             comes between its own store of `claimed` and its load of `held`: a full barrier on
 *             the owner's processor at some point. If that point comes before the owner's load, the
 *             load sees the claim; if after, the store of `held` is out and the stranger sees it.
 *             Where membarrier is missing both sides use a full fence instead; where it begins to
 *             be refused later, no stranger enters any more. Nobody enters his own gate while he
 *             holds a claim, so two strangers cannot wait for each other. The stranger waits a
 *             bounded time only: a thread that was stopped or jumped out of a slow path keeps its
 *             heap, and nobody hangs.
 * Threads     held: written by the owner; claimed: by strangers, one at a time.
 * Tests       tests/unit/cache/gate_test.c, tests/race/gate_race.c, docs/model/gate.pml
 */
#ifndef HAK_CACHE_GATE_H
#define HAK_CACHE_GATE_H

#include "base/atomic.h"
#include "base/compiler.h"

struct gate {
    _Atomic uint32_t held;
    _Atomic uint32_t claimed;
};

/* Waits until no stranger holds the claim; returns with the gate held. */
void hak_gate_enter_slow(struct gate *gate);

/* True when this process uses membarrier, so that owners need no fence. */
extern bool hak_gate_is_asymmetric;

/* The owner is inside already: a signal handler interrupted a slow path of its own thread. */
HAK_INLINE bool hak_gate_is_nested(const struct gate *gate)
{
    return hak_load_relaxed(&gate->held) != 0;
}

HAK_INLINE void hak_gate_enter(struct gate *gate)
{
    hak_store_relaxed(&gate->held, 1);
    if (HAK_UNLIKELY(!hak_gate_is_asymmetric))
        hak_fence_full(); /* partner: the fence in hak_gate_barrier */
    hak_compiler_fence();
    /* acquire: partner is the release in hak_gate_release */
    if (HAK_UNLIKELY(hak_load_acquire(&gate->claimed) != 0))
        hak_gate_enter_slow(gate);
}

HAK_INLINE void hak_gate_leave(struct gate *gate)
{
    /* release: partner is the acquire of `held` in hak_gate_await */
    hak_store_release(&gate->held, 0);
}

/* A stranger's way in, in three steps so that many gates share one barrier: mark, barrier, await.
 * hak_gate_mark is false when another stranger has the claim. */
bool hak_gate_mark(struct gate *gate);
void hak_gate_barrier(void);
/* True when the gate is open and ours; false after `patience_ms`, or when the kernel refused the
 * barrier: the claim is withdrawn. */
bool hak_gate_await(struct gate *gate, uint32_t patience_ms);
void hak_gate_release(struct gate *gate);

/* Decides for the process how owners and strangers order their steps. */
void hak_gate_start(void);

#endif
