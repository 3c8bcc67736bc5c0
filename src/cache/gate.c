/* SPDX-License-Identifier: MIT */
#include "cache/gate.h"

#include "os/os.h"

#define SPIN_ROUNDS 200

bool hak_gate_is_asymmetric;

/* The last barrier did not happen. Strangers are one at a time (STRANGER lock): it is theirs. */
static _Atomic uint32_t barrier_is_missing;

void hak_gate_start(void)
{
    hak_gate_is_asymmetric = hak_os_has_membarrier();
}

void hak_gate_enter_slow(struct gate *gate)
{
    for (;;) {
        hak_store_release(&gate->held, 0);
        for (int i = 0; hak_load_relaxed(&gate->claimed) != 0; i++) {
            if (i < SPIN_ROUNDS)
                hak_cpu_relax();
            else
                hak_os_futex_wait(&gate->claimed, 1, 1);
        }
        hak_store_relaxed(&gate->held, 1);
        /* Here a fence costs nothing that matters, with or without membarrier. */
        hak_fence_full();
        if (hak_load_acquire(&gate->claimed) == 0)
            return;
    }
}

bool hak_gate_mark(struct gate *gate)
{
    uint32_t expected = 0;
    return hak_cas_acquire(&gate->claimed, &expected, 1);
}

void hak_gate_barrier(void)
{
    bool is_done = true;
    if (hak_gate_is_asymmetric)
        is_done = hak_os_membarrier();
    else
        hak_fence_full(); /* partner: the fence in hak_gate_enter */
    hak_store_relaxed(&barrier_is_missing, !is_done);
}

bool hak_gate_await(struct gate *gate, uint32_t patience_ms)
{
    uint64_t deadline = 0;
    if (HAK_UNLIKELY(hak_load_relaxed(&barrier_is_missing) != 0)) {
        hak_gate_release(gate); /* an owner may be inside with `held` in his store buffer */
        return false;
    }
    for (int i = 0;; i++) {
        /* acquire: partner is the release in hak_gate_leave */
        if (hak_load_acquire(&gate->held) == 0)
            return true;
        if (i < SPIN_ROUNDS) {
            hak_cpu_relax();
            continue;
        }
        uint64_t now = hak_os_clock_ms();
        if (deadline == 0)
            deadline = now + patience_ms;
        if (now > deadline) {
            hak_gate_release(gate);
            return false;
        }
        hak_os_yield();
    }
}

void hak_gate_release(struct gate *gate)
{
    /* release: partner is the acquire in hak_gate_enter */
    hak_store_release(&gate->claimed, 0);
    hak_os_futex_wake(&gate->claimed, 1);
}
