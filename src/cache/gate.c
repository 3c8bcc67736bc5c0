/* SPDX-License-Identifier: MIT */
#include "cache/gate.h"

#include "os/confine.h"
#include "os/lock.h"

#include <limits.h>

#define SPIN_ROUNDS 200

_Atomic bool hak_gate_is_asymmetric;
/* What strangers do; false a while longer than what owners do. */
static _Atomic bool strangers_fence;
_Atomic uint32_t hak_gates_closed;
_Atomic bool hak_gate_jumps_matter;

/* The last barrier did not happen. Strangers are one at a time (STRANGER lock): it is theirs. */
static _Atomic uint32_t barrier_is_missing;

void hak_gate_start(void)
{
    hak_store_relaxed(&hak_gate_is_asymmetric, hak_os_has_membarrier());
    hak_store_relaxed(&strangers_fence, !hak_os_has_membarrier());
}

void hak_gate_end_asymmetry(void)
{
    if (!hak_load_relaxed(&hak_gate_is_asymmetric))
        return;
    hak_store_relaxed(&hak_gate_is_asymmetric, false);
    /* release: partner is the acquire in hak_gate_barrier */
    if (hak_os_membarrier())
        hak_store_release(&strangers_fence, true);
}

/* Sleeps, after a while, as long as the word is set. Who set it may have stayed behind when the
 * process was copied; then it is cleared here. */
static void wait_while_set(_Atomic uint32_t *word)
{
    uint32_t value;
    for (int i = 0; (value = hak_load_relaxed(word)) != 0; i++) {
        if (hak_copy_is_unnoticed())
            hak_copy_notice();
        else if (i < SPIN_ROUNDS)
            hak_cpu_relax();
        else
            /* A sleep with an end may be taken up again by a call of its own. */
            hak_os_futex_wait(word, value, hak_os_is_confined() ? 0 : 1);
    }
}

void hak_gate_enter_slow(struct gate *gate)
{
    if (hak_lock_held & HAK_LOCK_ALL) /* a handler of our own fork allocates: all is at rest */
        return;
    for (;;) {
        hak_store_release(&gate->held, GATE_OPEN);
        wait_while_set(&gate->claimed);
        wait_while_set(&hak_gates_closed);
        hak_store_relaxed(&gate->held, GATE_HELD);
        /* Here a fence costs nothing that matters, with or without membarrier. */
        hak_fence_full();
        if (hak_load_acquire(&gate->claimed) == 0 && hak_load_acquire(&hak_gates_closed) == 0)
            return;
    }
}

bool hak_gate_mark(struct gate *gate)
{
    uint32_t expected = 0;
    return hak_cas_acquire(&gate->claimed, &expected, GATE_CLAIMED);
}

void hak_gate_barrier(void)
{
    bool is_done = true;
    /* acquire: partner is the release in hak_gate_end_asymmetry */
    if (hak_load_acquire(&strangers_fence))
        hak_fence_full(); /* partner: the fence in hak_gate_enter */
    else
        is_done = hak_os_membarrier();
    hak_store_relaxed(&barrier_is_missing, !is_done);
}

bool hak_gate_await_owner(const struct gate *gate, uint64_t deadline_ms)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&barrier_is_missing) != 0))
        return false; /* an owner may be inside with `held` in his store buffer */
    for (int i = 0;; i++) {
        /* acquire: partners are the releases in hak_gate_leave and hak_gate_note_fork */
        uint32_t held = hak_load_acquire(&gate->held);
        if (held != GATE_HELD)
            return held == GATE_OPEN;
        if (i < SPIN_ROUNDS) {
            hak_cpu_relax();
            continue;
        }
        if (hak_os_clock_ms() > deadline_ms)
            return false;
        hak_os_yield();
    }
}

bool hak_gate_await(struct gate *gate, uint32_t patience_ms)
{
    uint64_t deadline_ms = patience_ms == 0 ? 0 : hak_os_clock_ms() + patience_ms;
    bool is_open = hak_gate_await_owner(gate, deadline_ms);
    if (is_open)
        hak_store_relaxed(&gate->claimed, GATE_VISITED);
    else
        hak_gate_release(gate);
    return is_open;
}

void hak_gate_release(struct gate *gate)
{
    /* release: partner is the acquire in hak_gate_enter */
    hak_store_release(&gate->claimed, GATE_UNCLAIMED);
    hak_os_futex_wake(&gate->claimed, 1);
}

bool hak_gates_close(void)
{
    hak_store_relaxed(&hak_gates_closed, 1);
    hak_gate_barrier();
    return hak_load_relaxed(&barrier_is_missing) == 0;
}

void hak_gates_open(void)
{
    /* release: partner is the acquire in hak_gate_enter */
    hak_store_release(&hak_gates_closed, 0);
    hak_os_futex_wake(&hak_gates_closed, INT_MAX);
}
