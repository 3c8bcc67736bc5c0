/* SPDX-License-Identifier: MIT */
#include "cache/stranger.h"

#include "os/lock.h"

/* An owner inside its gate for longer is stopped, or waits for memory itself. */
#define PATIENCE_MS 4

static struct hak_lock stranger_lock = HAK_LOCK_START_WITH(HAK_LOCK_STRANGER);
/* The heap that the lock's holder has claimed. */
static struct heap *visited;

/* Under the lock, which it gives back unless it enters. A patience of 0 does not wait. */
static bool enter_locked(struct heap *heap, uint32_t patience_ms)
{
    if (hak_load_relaxed(&heap->state) == HEAP_ACTIVE && hak_gate_mark(&heap->gate)) {
        visited = heap;
        hak_gate_barrier();
        if (hak_gate_await(&heap->gate, patience_ms)) {
            /* acquire: partner is the release in activate_locked, see the argument */
            if (hak_load_acquire(&heap->state) == HEAP_ACTIVE)
                return true;
            hak_gate_release(&heap->gate);
        }
        visited = NULL;
    }
    hak_lock_give(&stranger_lock);
    return false;
}

bool hak_stranger_enter(struct heap *heap)
{
    hak_lock_take(&stranger_lock);
    return enter_locked(heap, PATIENCE_MS);
}

bool hak_stranger_try_enter(struct heap *heap)
{
    return !hak_gate_is_nested(&heap->gate) && hak_lock_try(&stranger_lock) &&
           enter_locked(heap, 0);
}

void hak_stranger_leave(struct heap *heap)
{
    hak_gate_release(&heap->gate);
    visited = NULL;
    hak_lock_give(&stranger_lock);
}

void hak_stranger_mend(void)
{
    if (!hak_lock_is_left(&stranger_lock))
        return;
    if (visited != NULL)
        hak_gate_release(&visited->gate);
    visited = NULL;
    hak_lock_give(&stranger_lock);
}

bool hak_stranger_is_away(const struct heap *heap)
{
    hak_fence_full(); /* partner: the barrier in hak_stranger_enter */
    return hak_load_acquire(&heap->gate.claimed) == 0;
}

bool hak_stranger_try_lock(void)
{
    return hak_lock_try(&stranger_lock);
}

void hak_stranger_lock(void)
{
    hak_lock_take(&stranger_lock);
}

void hak_stranger_unlock(void)
{
    hak_lock_give(&stranger_lock);
}

void hak_stranger_lock_reset(void)
{
    hak_lock_reset(&stranger_lock);
}
