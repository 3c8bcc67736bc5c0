/* SPDX-License-Identifier: MIT */
#include "hardened/sample.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "hardened/fenced.h"
#include "heap/limit.h"
#include "misuse/harden.h"
#include "os/fault_watch.h"
#include "os/frames.h"
#include "process/slow_path.h"
#include "profile/sampler.h"

/* Each costs a call of the kernel. */
#define FRAMES 4u

static _Atomic uint64_t last_ms;

static struct guarded_trace trace_of(struct os_caller caller)
{
    struct guarded_trace trace = {{0}, hak_os_thread_label()};
    hak_os_frames(caller.address, caller.frame, trace.addresses, FRAMES);
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
    if (hak_conf_number(guard_rate) == 0 || !hak_sampled_guard_fits(bytes, alignment))
        return NULL; /* the next one that fits */
    if (hak_cache_at_rest() != cache)
        return NULL;
    hak_store_relaxed(&cache->guard_left_bytes, hak_sampled_guard_countdown());
    if (hak_limit_is_set() || hak_harden_has(HARDEN_COUNTED) || is_too_soon())
        return NULL;
    struct guarded_trace trace = trace_of(caller);
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
    if (hak_sampler_watches())
        hak_sampler_end(block);
    if (hak_fence_holds(block)) {
        hak_fenced_give(block, caller);
        return;
    }
    struct guarded_trace trace = trace_of(caller);
    hak_guarded_give(block, &trace);
}
