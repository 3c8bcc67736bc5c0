/* SPDX-License-Identifier: MIT */
#include "api/api.h"
#include "base/bits.h"
#include "cache/lifecycle.h"
#include "cache/registry.h"
#include "cache/supply.h"
#include "os/os.h"
#include "policy/policy_table.h"
#include "slab/depot.h"
#include "span/large.h"
#include "span/span_heap.h"

/* The tick acts at most so often, and on so much. */
#define TICK_MS 20
#define TICK_SUPERSLABS 8
#define TICK_SPANS 16
/* At most this share of the live large blocks is kept warm for their successors. */
#define RETAIN_SHARE 4

static _Atomic uint64_t last_tick_ms;

void hak_maintain_tick(void)
{
    uint64_t now = hak_os_clock_ms();
    uint64_t last = hak_load_relaxed(&last_tick_ms);
    /* acquire: no partner is needed, the exchange only elects one thread */
    if (now - last < TICK_MS || !hak_cas_acquire(&last_tick_ms, &last, now))
        return;
    hak_registry_drain_parked();
    uint64_t decay = hak_policy_read(decay_ms);
    if (decay > now)
        return;
    uint64_t before = now - decay;
    if (hak_depot_has_warm(before))
        hak_depot_purge(before, TICK_SUPERSLABS);
    hak_supply_trim();
    size_t keep = hak_least(hak_policy_read(retain_bytes), hak_large_live_bytes() / RETAIN_SHARE);
    if (hak_span_oldest_ms() <= before && hak_span_warm_bytes() > keep)
        hak_span_purge(before, keep, TICK_SPANS);
}

size_t hak_maintain_purge_all(void)
{
    hak_registry_drain_parked();
    size_t bytes = hak_depot_purge(UINT64_MAX, UINT32_MAX);
    hak_supply_trim();
    return bytes + hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
}

static void tidy(struct heap *heap, enum heap_access access, void *context)
{
    (void)context;
    if (access != HEAP_OPEN || hak_load_relaxed(&heap->state) == HEAP_FROZEN)
        return;
    hak_heap_collect(heap);
    hak_heap_retire_spares(heap);
}

size_t hak_maintain_trim(size_t keep_bytes)
{
    struct heap *own = hak_own_heap();
    if (own != NULL && !hak_gate_is_nested(&own->gate)) {
        hak_gate_enter(&own->gate);
        hak_heap_flush_all(own);
        hak_gate_leave(&own->gate);
    }
    hak_registry_visit(tidy, NULL);
    size_t bytes = hak_depot_purge(UINT64_MAX, UINT32_MAX);
    hak_supply_trim();
    return bytes + hak_span_purge(UINT64_MAX, keep_bytes, UINT32_MAX);
}
