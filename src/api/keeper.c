/* SPDX-License-Identifier: MIT */
#include "api/keeper.h"

#include "api/api.h"
#include "api/outlet.h"
#include "api/service.h"
#include "api/tally.h"
#include "base/bits.h"
#include "cache/container.h"
#include "cache/lifecycle.h"
#include "cache/limit.h"
#include "cache/registry.h"
#include "cache/settings.h"
#include "conf/conf.h"
#include "os/confine.h"
#include "os/os.h"
#include "os/thread.h"
#include "policy/policy_table.h"
#include "span/big_cache.h"

/* The thread is worth its while from this size of the heap on (docs/adr/0006). */
#define START_BYTES (64 * HAK_MIB)
/* In a program of one thread: while one part in so many of what is held is free. */
#define FREE_SHARE 4
/* Between two visits while there is work, and while there may be some. */
#define BUSY_MS 20
#define CALM_MS 100
/* After so many visits that found nothing, and as many as what is free now may take to grow old,
 * the thread sleeps until a slow path wakes it. */
#define CALM_VISITS 8
/* Nobody waits for what is kept longer than this. */
#define AWAITED_MS 600000
/* While it sleeps, the pressure on memory is looked at so often if so much is warm. */
#define WATCH_MS 2000u
#define WATCH_FROM_BYTES (4 * HAK_MIB)

enum keeper_state { KEEPER_NONE, KEEPER_RUNS, KEEPER_REFUSED };

static _Atomic uint32_t keeper_state;
static _Atomic uint32_t is_asleep;
static _Atomic uint32_t is_wanted; /* though the heap is small */
static _Atomic size_t start_bytes = START_BYTES;
static _Atomic size_t free_in_slabs; /* of a program of one thread, as of its last tick */

static bool is_large(void)
{
    return hak_load_relaxed(&hak_region.committed_bytes) >= hak_load_relaxed(&start_bytes);
}

/* Slow operations of all threads so far: changes as long as the program is at work. */
static uint64_t activity(void)
{
    uint64_t sum = 0;
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next)
        sum += hak_load_relaxed(&heap->stats.counters[HAK_STAT_refills]) +
               hak_load_relaxed(&heap->stats.counters[HAK_STAT_flushes]) +
               hak_load_relaxed(&heap->stats.counters[HAK_STAT_remote_publishes]) +
               hak_load_relaxed(&heap->stats.counters[HAK_STAT_spans_given]);
    return sum;
}

/* Where memory is short, everything free goes back, whatever is told elsewhere. */
bool hak_keeper_watch(void)
{
    bool is_pressed = hak_container_is_pressed(hak_os_clock_ms());
    if (is_pressed)
        hak_maintain_relieve();
    return is_pressed;
}

/* How long to sleep while nobody calls; 0: for ever. Nobody need watch the pressure on memory while
 * nothing could be given back. */
static uint32_t patience_ms(void)
{
    uint32_t patience = hak_outlet_patience_ms();
    if (!hak_container_tells_pressure() || hak_limit_warm_bytes() < WATCH_FROM_BYTES)
        return patience;
    return patience == 0 ? WATCH_MS : (uint32_t)hak_least(patience, WATCH_MS);
}

/* Who works after the second look finds the thread asleep and wakes it. */
static void sleep_until_woken(uint64_t last_activity)
{
    hak_store_relaxed(&is_asleep, 1);
    hak_fence_full();
    if (activity() != last_activity)
        hak_store_relaxed(&is_asleep, 0);
    while (hak_load_relaxed(&is_asleep) != 0) {
        hak_os_futex_wait(&is_asleep, 1, patience_ms());
        hak_outlet_tick();
        hak_keeper_watch();
    }
}

/* A thread that was started to print only leaves memory as it is. */
static size_t visit(bool *is_done)
{
    *is_done = true;
    return is_large() ? hak_maintain_visit(is_done) : 0;
}

static uint32_t calm_visits_most(void)
{
    uint64_t keep_ms = hak_most(hak_policy_read(decay_ms), hak_big_cache_keep_ms());
    return CALM_VISITS + (keep_ms > AWAITED_MS ? 0 : (uint32_t)(keep_ms / CALM_MS));
}

static _Noreturn void keep_for_ever(void)
{
    uint64_t last = 0;
    uint32_t calm_visits = 0;
    _Atomic uint32_t nobody = 0;
    for (;;) {
        bool is_done;
        size_t bytes = visit(&is_done);
        hak_outlet_tick();
        hak_keeper_watch();
        uint64_t now = activity();
        bool is_calm = bytes == 0 && is_done;
        calm_visits = is_calm && now == last ? calm_visits + 1 : 0;
        last = now;
        if (calm_visits >= calm_visits_most())
            sleep_until_woken(now);
        hak_os_futex_wait(&nobody, 0, is_calm ? CALM_MS : BUSY_MS);
    }
}

static void *keep(void *unused)
{
    hak_os_thread_name("hakmem");
    hak_settings_read();
    keep_for_ever();
    return unused;
}

static void forget(void)
{
    /* What the parent had is no reason for a child, which may be about to exec. */
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    hak_store_relaxed(&start_bytes, committed + START_BYTES);
    hak_store_relaxed(&keeper_state, KEEPER_NONE);
    hak_store_relaxed(&is_asleep, 0);
    hak_store_relaxed(&is_wanted, 0);
}

static void start(void)
{
    uint32_t expected = KEEPER_NONE;
    if (hak_conf_number(maintenance) == MAINTENANCE_OFF ||
        (!is_large() && hak_outlet_patience_ms() == 0))
        return;
    hak_process_on_fork(forget);
    /* release: a child that takes its thread to run has the mender, too */
    if (!hak_cas_release(&keeper_state, &expected, KEEPER_RUNS))
        return;
    if (!hak_os_ask_begin()) {
        hak_store_relaxed(&keeper_state, KEEPER_REFUSED);
        return;
    }
    uint64_t signals = hak_os_block_signals();
    hak_tally_set_own(true); /* libc allocates for both */
    if (!hak_os_thread_start(keep))
        hak_store_relaxed(&keeper_state, KEEPER_REFUSED);
    hak_tally_set_own(false);
    hak_os_restore_signals(signals);
    hak_os_ask_end();
}

void hak_keeper_stir(void)
{
    if (hak_load_relaxed(&is_asleep) != 0) {
        hak_store_relaxed(&is_asleep, 0);
        hak_os_futex_wake(&is_asleep, 1);
    }
}

void hak_keeper_wake(void)
{
    if (hak_load_relaxed(&keeper_state) == KEEPER_NONE && hak_outlet_patience_ms() != 0)
        hak_store_relaxed(&is_wanted, 1);
    hak_keeper_stir();
}

void hak_keeper_consider(void)
{
    if (HAK_LIKELY(hak_load_relaxed(&keeper_state) != KEEPER_NONE))
        return;
    bool is_due = hak_load_relaxed(&is_wanted) != 0 || (is_large() && !hak_os_is_single_threaded());
    if (HAK_UNLIKELY(is_due) && hak_thread_is_outside())
        start();
}

/* A program of one thread pays for a second one: libc locks its streams and libstdc++ counts
 * references atomically from then on. So it gets that one when there is something to do for it. */
static bool is_large_alone(void)
{
    return hak_load_relaxed(&keeper_state) == KEEPER_NONE && is_large() &&
           hak_os_is_single_threaded();
}

static void weigh(void)
{
    size_t bytes =
        hak_limit_warm_bytes() + hak_span_caches_sum().bytes + hak_load_relaxed(&free_in_slabs);
    if (bytes >= hak_held_bytes() / FREE_SHARE && hak_thread_is_outside())
        start();
}

void hak_keeper_weigh(void)
{
    if (HAK_UNLIKELY(is_large_alone()))
        weigh();
}

void hak_keeper_weigh_heap(const struct heap *heap)
{
    if (HAK_LIKELY(!is_large_alone()))
        return;
    hak_store_relaxed(&free_in_slabs, hak_heap_free_bytes(heap));
    weigh();
}
