/* SPDX-License-Identifier: MIT */
/* cache/gate.h - how a stranger enters a heap that belongs to a running thread.
 *
 * Owns        struct gate, and the word that closes all gates for a fork. Every slow function that
 *             changes a heap runs with its gate held.
 * Invariants  never both: the owner inside its gate, and a stranger holding the claim, or all gates
 *             closed, with the gate seen open. The owner's way in is a store, a compiler barrier
 *             and a load of either word.
 * Argument    The bad interleaving is the owner's store of `held` waiting in its store buffer while
 *             it loads claimed == 0, and the stranger reading held == 0. The stranger's membarrier
 *             comes between its own store of `claimed` and its load of `held`: a full barrier on
 *             the owner's processor at some point. If that point comes before the owner's load, the
 *             load sees the claim; if after, the store of `held` is out and the stranger sees it.
 *             Where membarrier is missing both sides use a full fence instead; where it begins to
 *             be refused later, no stranger enters any more, and a fork takes no heap for closed.
 *             A program that confines itself gives membarrier up: owners begin to use fences, then
 *             comes a last membarrier, then strangers use fences. An owner that still read "no
 *             fence" has its store of `held` out by that barrier, and a stranger that uses a fence
 *             comes after it. Where that barrier is refused strangers go on asking for it.
 *             Nobody enters his own gate while he holds a claim, so two strangers cannot wait for
 *             each other. The stranger waits a bounded time only: a thread that was stopped or
 *             jumped out of a slow path keeps its heap, and nobody hangs. The owner's wait has no
 *             bound of its own but the stranger's: a claim, and the time between close and open,
 *             lie within a section under the stranger's lock with signals blocked, so that neither
 *             a jump nor a cancellation can end it (a kill ends the owner as well), and what a
 *             stranger does there is finite.
 *             Closing writes one word, not one a heap: after a fork each page written is a copy.
 * Threads     held and frame: written by the owner; claimed: by strangers, one at a time; closed:
 *             by who holds the registry's lock.
 * Tests       tests/unit/cache/gate_test.c, tests/race/gate_race.c, docs/model/gate.pml
 */
#ifndef HAK_CACHE_GATE_H
#define HAK_CACHE_GATE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/section.h"

/* What `held` says. GATE_IN_FORK: in a handler that interrupted the owner inside, the same thread
 * waits for its turn to fork. */
enum { GATE_OPEN, GATE_HELD, GATE_IN_FORK };
/* Whether a stranger wants to come in, and from when on he may have changed the heap: what matters
 * in a copy of the process in which he does not exist. */
enum gate_claim { GATE_UNCLAIMED, GATE_CLAIMED, GATE_VISITED };

struct gate {
    _Atomic uint32_t held;
    _Atomic uint32_t claimed; /* enum gate_claim */
    uintptr_t frame;          /* where the owner's stack was when it came in, while it is inside */
};

/* True while a fork is under way; the forking thread alone passes. */
extern _Atomic uint32_t hak_gates_closed;

/* True once a slow path was left by a jump or by cancellation: from then on slow paths block
 * signals, so that this costs the program memory a few times, not again and again. */
extern _Atomic bool hak_gate_jumps_matter;
HAK_INLINE void hak_gate_note_jump(void)
{
    hak_store_relaxed(&hak_gate_jumps_matter, true);
}

/* Waits until no stranger holds the claim; returns with the gate held. */
void hak_gate_enter_slow(struct gate *gate);

/* True when this process uses membarrier, so that owners need no fence. */
extern _Atomic bool hak_gate_is_asymmetric;

/* The owner is inside already: a signal handler interrupted a slow path of its own thread. */
HAK_INLINE bool hak_gate_is_nested(const struct gate *gate)
{
    return hak_load_relaxed(&gate->held) != GATE_OPEN;
}

HAK_INLINE void hak_gate_enter(struct gate *gate)
{
    gate->frame = (uintptr_t)__builtin_frame_address(0);
    hak_compiler_fence();
    hak_store_relaxed(&gate->held, GATE_HELD);
    if (HAK_UNLIKELY(!hak_load_relaxed(&hak_gate_is_asymmetric)))
        hak_fence_full(); /* partner: the fence in hak_gate_barrier */
    hak_compiler_fence();
    /* acquire: partners are the releases in hak_gate_release and hak_gates_open */
    if (HAK_UNLIKELY((hak_load_acquire(&gate->claimed) | hak_load_acquire(&hak_gates_closed)) != 0))
        hak_gate_enter_slow(gate);
    /* Again: a handler that entered and left before us has overwritten it. */
    gate->frame = (uintptr_t)__builtin_frame_address(0);
}

/* The gate is held, by a slow path of this thread that is gone: the stack it ran on has been left,
 * by a jump out of a signal handler. False where that cannot be told. `here`: the frame of the
 * function that would enter, so that it knows a jump out of itself. */
HAK_INLINE bool hak_gate_is_abandoned_at(const struct gate *gate, uintptr_t here)
{
    return hak_gate_is_nested(gate) && hak_frame_is_left_at(gate->frame, here);
}

HAK_INLINE bool hak_gate_is_abandoned(const struct gate *gate)
{
    return hak_gate_is_abandoned_at(gate, (uintptr_t)__builtin_frame_address(0));
}

HAK_INLINE void hak_gate_leave(struct gate *gate)
{
    /* release: partner is the acquire of `held` in hak_gate_await_owner */
    hak_store_release(&gate->held, GATE_OPEN);
}

/* While the owner waits for the stranger's lock to fork, whoever has the lock need not wait for the
 * owner: it would be in vain. */
HAK_INLINE void hak_gate_note_fork(struct gate *gate, bool waits)
{
    if (hak_gate_is_nested(gate)) /* release: partner is the acquire in hak_gate_await_owner */
        hak_store_release(&gate->held, waits ? GATE_IN_FORK : GATE_HELD);
}

/* A stranger's way in, in three steps so that many gates share one barrier: mark, barrier, await.
 * hak_gate_mark is false when another stranger has the claim. */
bool hak_gate_mark(struct gate *gate);
void hak_gate_barrier(void);
/* True when the gate is open and ours; false after `patience_ms` (0: a moment), or when the kernel
 * refused the barrier: the claim is withdrawn. */
bool hak_gate_await(struct gate *gate, uint32_t patience_ms);
void hak_gate_release(struct gate *gate);

/* The same for all gates at once, by the holder of the registry's lock: nobody enters until they
 * are opened again. False: the kernel refused the barrier, and somebody may have entered. */
bool hak_gates_close(void);
void hak_gates_open(void);
/* True once the owner is outside; false when it still is inside at `deadline_ms`, or waits to
 * fork. */
bool hak_gate_await_owner(const struct gate *gate, uint64_t deadline_ms);

/* Decides for the process how owners and strangers order their steps. */
void hak_gate_start(void);
/* From now on without membarrier, which may kill. */
void hak_gate_end_asymmetry(void);

#endif
