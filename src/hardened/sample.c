/* SPDX-License-Identifier: MIT */
#include "hardened/sample.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "heap/limit.h"
#include "misuse/harden.h"
#include "os/fault_watch.h"
#include "os/frames.h"
#include "process/service.h"

static _Atomic uint64_t last_ms;

static struct sampled_guard_trace trace_of(struct os_caller caller)
{
    struct sampled_guard_trace trace;
    hak_os_frames(caller.address, caller.frame, trace.addresses, HAK_SAMPLED_GUARD_FRAMES);
    trace.thread = hak_os_thread_label();
    return trace;
}

/* Two threads in the same instant may both go on; no harm. */
static bool is_too_soon(void)
{
    if (hak_conf_number(guard_rate) < (int64_t)HAK_SAMPLE_RATE_BRISK)
        return false;
    uint64_t now = hak_os_clock_ms();
    if (hak_load_relaxed(&last_ms) == now)
        return true;
    hak_store_relaxed(&last_ms, now);
    return false;
}

HAK_NOINLINE void *hak_sample_take(struct cache *cache, size_t bytes, size_t alignment,
                                   struct os_caller caller)
{
    if (!hak_sampled_guard_fits(bytes, alignment))
        return NULL; /* the next one that fits */
    if (hak_cache_at_rest() != cache)
        return NULL;
    hak_store_relaxed(&cache->guard_left_bytes, hak_sampled_guard_countdown());
    if (hak_limit_is_set() || hak_harden_has(HARDEN_COUNTED) || is_too_soon())
        return NULL;
    struct sampled_guard_trace trace = trace_of(caller);
    void *block = hak_sampled_guard_take(hak_most(bytes, 1), alignment, &trace);
    if (block == NULL) {
        hak_stat_global_add(guarded_full, 1);
        return NULL;
    }
    hak_fetch_sub_relaxed(&cache->guard_left_bytes, (int64_t)hak_most(bytes, 1));
    hak_os_fault_watch_raise();
    return block;
}

void hak_sample_free(void *block, struct os_caller caller)
{
    struct sampled_guard_trace trace = trace_of(caller);
    hak_sampled_guard_give(block, &trace);
}
