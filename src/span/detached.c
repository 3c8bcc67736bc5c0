/* SPDX-License-Identifier: MIT */
#include "span/detached.h"

#include "base/bits.h"
#include "os/os.h"
#include "region/tag_map.h"
#include "span/big_cache.h"

/* Granules without a record, in superslabs; and their peaks in intervals as long as free memory is
 * kept: this one, and the one before. */
static struct {
    _Atomic size_t bytes, peak_bytes, last_peak_bytes;
    _Atomic uint64_t since_ms; /* when this interval began */
} detached;

/* relaxed, all of it: a race loses a little of a peak, once */
static void begin_interval_when_due(void)
{
    uint64_t since_ms = hak_load_relaxed(&detached.since_ms);
    uint64_t past_ms = hak_excess(hak_os_clock_ms(), since_ms), keep_ms = hak_big_cache_keep_ms();
    if (HAK_LIKELY(past_ms < keep_ms))
        return;
    size_t now = hak_load_relaxed(&detached.bytes);
    bool is_next = past_ms / 2 < keep_ms; /* no whole interval went by without a look */
    hak_store_relaxed(&detached.last_peak_bytes,
                      is_next ? hak_load_relaxed(&detached.peak_bytes) : now);
    hak_store_relaxed(&detached.peak_bytes, now);
    hak_store_relaxed(&detached.since_ms, since_ms + past_ms);
}

void hak_note_detached(uint32_t count)
{
    begin_interval_when_due();
    size_t bytes = (size_t)count << HAK_GRANULE_SHIFT;
    size_t now = hak_fetch_add_relaxed(&detached.bytes, bytes) + bytes;
    if (now > hak_load_relaxed(&detached.peak_bytes))
        hak_store_relaxed(&detached.peak_bytes, now);
}

void hak_note_attached(uint32_t count)
{
    begin_interval_when_due();
    hak_fetch_sub_relaxed(&detached.bytes, (size_t)count << HAK_GRANULE_SHIFT);
}

size_t hak_span_attached_bytes(void)
{
    begin_interval_when_due();
    size_t peak = hak_most(hak_load_relaxed(&detached.peak_bytes),
                           hak_load_relaxed(&detached.last_peak_bytes));
    return hak_excess(peak, hak_load_relaxed(&detached.bytes));
}
