/* SPDX-License-Identifier: MIT */
#include "heap/slow_clock.h"

#include "base/bits.h"
#include "os/os.h"

#define DRAWN_OF 8u
#define NS_MOST 1000000u

struct slow_sums hak_slow_sums;
_Atomic uint32_t hak_slow_clock;

static _Atomic uint64_t purge_ns_before; /* of the path that was drawn last: a hint */

static bool is_drawn(const struct cache *cache)
{
    return hak_bit_mix(hak_load_relaxed(&cache->slow_count)) % DRAWN_OF == 0;
}

uint64_t hak_slow_begin(const struct cache *cache)
{
    if (!is_drawn(cache))
        return 0;
    hak_store_relaxed(&purge_ns_before, hak_load_relaxed(&hak_os_counters.purge_time_ns));
    return hak_os_clock_ns();
}

void hak_slow_end(uint64_t begun_ns)
{
    uint64_t purge_ns =
        hak_load_relaxed(&hak_os_counters.purge_time_ns) - hak_load_relaxed(&purge_ns_before);
    uint64_t ns = hak_excess(hak_os_clock_ns() - begun_ns, purge_ns);
    hak_fetch_add_relaxed(&hak_slow_sums.ns, DRAWN_OF * hak_least(ns, NS_MOST));
}

void hak_slow_note_refill(const struct cache *cache, size_t block_bytes)
{
    if (is_drawn(cache))
        hak_fetch_add_relaxed(&hak_slow_sums.refilled_bytes, DRAWN_OF * block_bytes);
}

void hak_slow_note_large(size_t bytes)
{
    hak_fetch_add_relaxed(&hak_slow_sums.large_bytes, bytes);
}
