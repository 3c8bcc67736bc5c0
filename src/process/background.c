/* SPDX-License-Identifier: MIT */
#include "process/background.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "control/control.h"
#include "heap/cache_list.h"
#include "heap/cgroup.h"
#include "heap/heaps.h"
#include "heap/limit.h"
#include "heap/settings.h"
#include "os/bare_exit.h"
#include "os/confine.h"
#include "os/copy_mark.h"
#include "os/descriptors.h"
#include "os/home.h"
#include "os/identity.h"
#include "os/os.h"
#include "os/output.h"
#include "os/thread.h"
#include "policy/policy_table.h"
#include "process/fork.h"
#include "process/learned.h"
#include "process/matches.h"
#include "process/reclaim.h"
#include "process/slow_path.h"
#include "process/start.h"
#include "profile/show.h"
#include "slab/superslab_pool.h"
#include "span/big_cache.h"
#include "stats/writer.h"

/* The thread is worth its while from this size of the heap on (docs/adr/0006). */
#define START_BYTES (32 * HAK_MIB)
/* From this size on it is started once, to read the settings of the machine and the container. */
#define READ_BYTES (16 * HAK_MIB)
/* In a single-threaded program: while at least this share of held memory is free. */
#define FREE_SHARE 4
/* Between two visits while there is work, and while there may be some. */
#define BUSY_MS 20
#define CALM_MS 100
/* It ends after this many visits without work, and the number that free memory may take to go. */
#define CALM_VISITS 8
/* The thread does not wait for memory that is kept longer than this. */
#define AWAITED_MS 600000
/* While it sleeps, memory pressure is checked at this interval if this much is warm. */
#define WATCH_MS 2000u
#define WATCH_FROM_BYTES (4 * HAK_MIB)
/* A refused start is tried again after so long. */
#define RETRY_MS 1000
/* A handler that pauses may have interrupted what the thread waits for. */
#define PAUSE_IN_HANDLER_MS 20

enum background_state { BACKGROUND_NONE, BACKGROUND_RUNS };

static _Atomic uint32_t state;
static struct os_thread threads[2];
static _Atomic uint32_t pauses;
static _Atomic uint32_t is_asleep;
static _Atomic uint32_t alarm_count;
static _Atomic uint32_t is_wanted; /* though the heap is small, while something is to be shown */
static _Atomic uint64_t refused_ms;
static _Atomic size_t start_bytes = START_BYTES;
static _Atomic size_t free_in_slabs;  /* as of the last tick of some thread */
static _Atomic uint32_t is_bare_copy; /* it may end by the end of its thread alone */

static bool is_large(void)
{
    return hak_load_relaxed(&hak_region.committed_bytes) >= hak_load_relaxed(&start_bytes);
}

/* A single-threaded program returns freed memory on its own slow paths while it works: the
 * background thread is worth while only when much is free. */
static bool is_worth_while(void)
{
    if (hak_load_relaxed(&hak_active_caches) > 1 &&
        hak_load_relaxed(&hak_stat_globals.threads_started) > 1)
        return true;
    size_t bytes =
        hak_limit_warm_bytes() + hak_span_caches_sum().bytes + hak_load_relaxed(&free_in_slabs);
    return bytes >= hak_held_bytes() / FREE_SHARE;
}

static bool is_due(void)
{
    if (hak_load_relaxed(&is_wanted) != 0 && hak_stats_writer_patience_ms() != 0)
        return true;
    return is_large() && is_worth_while();
}

/* Its one-time purpose is served and the heap is too small for it: it ends although the program
 * works. */
static bool is_needless(void)
{
    return !is_large() && hak_stats_writer_patience_ms() == 0;
}

static bool has_something_to_read(void)
{
    return hak_load_relaxed(&hak_settings_were_read) == 0 &&
           hak_load_relaxed(&hak_region.committed_bytes) >= READ_BYTES;
}

/* Slow operations of all threads so far: changes as long as the program is at work. */
static uint64_t activity(void)
{
    uint64_t sum = hak_load_relaxed(&hak_stat_cacheless.counters[HAK_STAT_spans_given]);
    for (const struct cache *i = hak_caches_first(); i != NULL; i = i->next)
        sum += hak_load_relaxed(&i->stats.counters[HAK_STAT_refills]) +
               hak_load_relaxed(&i->stats.counters[HAK_STAT_flushes]) +
               hak_load_relaxed(&i->stats.counters[HAK_STAT_spans_given]);
    return sum;
}

/* Under memory pressure all free memory is returned, whatever the options say. */
bool hak_background_watch(void)
{
    bool is_pressed = hak_own_cgroup_is_pressed(hak_os_clock_ms());
    if (is_pressed)
        hak_reclaim_relieve();
    return is_pressed;
}

/* How long to sleep unless woken; 0: there is nothing to wait for. Memory pressure is not watched
 * while there is no memory to return. */
static uint32_t patience_ms(void)
{
    uint32_t patience = hak_stats_writer_patience_ms();
    if (!hak_own_cgroup_tells_pressure() || hak_limit_warm_bytes() < WATCH_FROM_BYTES)
        return patience;
    return patience == 0 ? WATCH_MS : (uint32_t)hak_least(patience, WATCH_MS);
}

static bool is_paused(void)
{
    return hak_load_relaxed(&pauses) != 0;
}

/* Reports: learned values, matches, statistics, published figures, answers to requests. */
static void tell(void)
{
    hak_learned_tick();
    hak_matches_tick();
    hak_stats_writer_tick();
    hak_show_tick_at_leisure();
    if (hak_control_tick() == CONTROL_WATCHED)
        hak_store_relaxed(&is_wanted, 1);
}

/* A thread that works after the second check finds this thread asleep and wakes it. */
static void sleep_until_woken(uint64_t last_activity)
{
    uint32_t patience;
    hak_store_relaxed(&is_asleep, 1);
    /* partners: the fences in hak_background_wake and `stop` */
    hak_fence_full();
    if (activity() != last_activity)
        hak_store_relaxed(&is_asleep, 0);
    while (hak_load_relaxed(&is_asleep) != 0 && !is_paused() && (patience = patience_ms()) != 0) {
        hak_os_futex_wait(&is_asleep, 1, patience);
        tell();
        hak_background_watch();
    }
    hak_store_relaxed(&is_asleep, 0);
}

static void wait_ms(uint32_t most_ms)
{
    uint32_t seen = hak_load_relaxed(&alarm_count);
    if (!is_paused())
        hak_os_futex_wait(&alarm_count, seen, most_ms);
}

/* A thread that was started to print only leaves memory as it is. */
static size_t visit(bool *is_done)
{
    *is_done = true;
    return is_large() ? hak_reclaim_visit(is_done) : 0;
}

/* What is free goes when it has been kept for long; an empty slab leaves its heap with the second
 * pass from now on at the latest. */
static uint32_t calm_visits_most(void)
{
    uint64_t most_ms = hak_most(hak_pool_keep_ms(), hak_big_cache_keep_ms());
    uint32_t times = 1;
    if (hak_load_relaxed(&hak_spare_granules) != 0) {
        most_ms = hak_most(most_ms, hak_policy_read(decay_ms));
        times = 2;
    }
    return CALM_VISITS + (most_ms > AWAITED_MS ? 0 : times * (uint32_t)(most_ms / CALM_MS));
}

/* For the thread that runs, or is about to be started; false: there is another one. */
static bool claim(void)
{
    uint32_t expected = BACKGROUND_NONE;
    /* acquire: partner is the release in `leave` */
    return hak_cas_acquire(&state, &expected, BACKGROUND_RUNS);
}

/* What this thread did is done; another one may claim. */
static void leave(void)
{
    hak_store_release(&state, BACKGROUND_NONE);
    hak_fence_full(); /* partners: the fences in hak_background_wake and hak_background_resume */
}

/* True: this one is done, unless threads were active since. */
static bool ends(uint64_t last_activity)
{
    leave();
    return is_paused() || activity() == last_activity || !claim();
}

/* True: this one is done, unless the pause is over. */
static bool ends_for_pause(void)
{
    leave();
    return is_paused() || !claim();
}

static bool ends_or_sleeps(uint64_t last_activity, bool is_calm_for_long)
{
    if (is_paused())
        return ends_for_pause();
    if (!is_calm_for_long)
        return false;
    if (patience_ms() == 0)
        return ends(last_activity);
    sleep_until_woken(last_activity);
    return false;
}

static void give_back(void)
{
    uint64_t last = 0;
    uint32_t calm_visits = 0;
    for (;;) {
        bool is_done;
        uint32_t spares = hak_load_relaxed(&hak_spare_granules);
        size_t bytes = visit(&is_done);
        tell();
        hak_background_watch();
        uint64_t now = activity();
        bool is_calm = bytes == 0 && is_done && hak_load_relaxed(&hak_spare_granules) == spares;
        calm_visits = is_calm && (now == last || is_needless()) ? calm_visits + 1 : 0;
        last = now;
        if (ends_or_sleeps(now, calm_visits >= calm_visits_most()))
            return;
        wait_ms(is_calm ? CALM_MS : BUSY_MS);
    }
}

/* Reports to files that are open from the start on are made with the program's descriptors. */
static void choose_descriptors(void)
{
    if (hak_stats_writer_keeps_files())
        hak_os_descriptors_share();
    else
        hak_os_descriptors_part();
}

static void run(void)
{
    hak_thread_be_apart();
    hak_os_output_end_when(is_paused);
    if (hak_os_ask_begin()) { /* its later calls are a confined program's, too */
        choose_descriptors();
        hak_os_thread_be_ordinary();
        hak_os_thread_name("hakmem");
        hak_os_ask_end();
    }
    hak_settings_read();
    uint64_t now = activity();
    if (is_due() || !ends(now))
        give_back();
}

static void forget(void)
{
    /* The parent's memory is no reason to start one in a child, which may be about to exec. */
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    hak_store_relaxed(&start_bytes, committed + START_BYTES);
    hak_os_thread_forget(&threads[0]);
    hak_os_thread_forget(&threads[1]);
    hak_store_relaxed(&state, BACKGROUND_NONE);
    hak_store_relaxed(&pauses, 0);
    hak_store_relaxed(&is_asleep, 0);
    hak_store_relaxed(&is_wanted, 0);
    hak_store_relaxed(&is_bare_copy, hak_load_relaxed(&hak_copy_mark->state) != COPY_SETTLED);
    hak_home_begin();
}

static bool is_refused_lately(void)
{
    uint64_t last = hak_load_relaxed(&refused_ms);
    return last != 0 && hak_os_clock_ms() - last < RETRY_MS;
}

/* The caller has moved the state to "runs", and asks. */
static bool start_one(void)
{
    for (int place = 0; place < 2; place++)
        if (hak_os_thread_is_over(&threads[place]))
            return hak_os_thread_start(&threads[place], run, (const void *)&hak_here);
    return false;
}

static void start_claimed(void)
{
    if (start_one())
        return;
    hak_store_relaxed(&refused_ms, hak_os_clock_ms());
    leave();
}

static void start_at_home(void)
{
    do {
        if (!claim())
            return;
        hak_fence_full(); /* partner: the fence in `stop` */
        if (!is_paused()) {
            start_claimed();
            return;
        }
        leave();
    } while (!is_paused()); /* and else hak_background_resume finds what is due */
}

/* A handler that copied the process in the middle of it would leave the copy a thread that `forget`
 * takes for its parent's, and another would be started on the same stack. */
static void start_here(void)
{
    uint64_t signals = hak_os_block_signals();
    if (hak_is_at_home() && !hak_copy_is_unnoticed())
        start_at_home();
    hak_os_restore_signals(signals);
}

/* A confined program gets none: its filter may kill it for the calls needed. Nor does a copy that
 * was made without fork: what clone made ends with its one thread, and the kernel reports the
 * status of the last one, which would be this. */
static void start(void)
{
    if (hak_conf_number(maintenance) == MAINTENANCE_OFF || hak_load_relaxed(&is_bare_copy) != 0 ||
        is_refused_lately() || !hak_os_ask_begin())
        return;
    start_here();
    hak_os_ask_end();
}

void hak_background_stir(void)
{
    /* seq_cst: partner is the fence in sleep_until_woken */
    if (HAK_UNLIKELY(hak_load_seq_cst(&is_asleep) != 0)) {
        hak_store_relaxed(&is_asleep, 0);
        hak_os_futex_wake(&is_asleep, 1);
    }
}

void hak_background_consider(void)
{
    /* seq_cst: partner is the fence in `leave` */
    if (HAK_LIKELY(hak_load_seq_cst(&state) != BACKGROUND_NONE))
        hak_background_stir();
    else if (is_due() || has_something_to_read())
        start();
}

void hak_background_wake(void)
{
    /* partners: the fences in sleep_until_woken and `leave`. What this thread did before is counted
     * where the other one looks, or it finds here that that one sleeps or has ended. */
    hak_fence_full();
    hak_background_consider();
}

void hak_background_consider_slabs(void)
{
    if (HAK_LIKELY(hak_load_relaxed(&state) != BACKGROUND_NONE || !is_large()))
        return;
    size_t bytes = 0;
    for (uint32_t i = 0; i < hak_heap_count(); i++)
        bytes += hak_heap_free_bytes(hak_heap_at(i));
    hak_store_relaxed(&free_in_slabs, bytes);
    hak_background_consider();
}

static bool is_here(void)
{
    return hak_load_relaxed(&state) != BACKGROUND_NONE || !hak_os_thread_is_over(&threads[0]) ||
           !hak_os_thread_is_over(&threads[1]);
}

/* Returns when it is gone, and none starts until the pause is over. */
static void stop(void)
{
    hak_fetch_add_relaxed(&pauses, 1);
    /* partners: the fences in start_at_home and sleep_until_woken */
    hak_fence_full();
    uint64_t deadline_ms =
        hak_thread_is_outside() ? UINT64_MAX : hak_os_clock_ms() + PAUSE_IN_HANDLER_MS;
    while (is_here() && hak_os_clock_ms() < deadline_ms) {
        hak_fetch_add_relaxed(&alarm_count, 1);
        hak_os_futex_wake(&alarm_count, 1);
        hak_background_stir();
        hak_os_thread_await(&threads[0], 1);
        hak_os_thread_await(&threads[1], 1);
    }
}

void hak_background_pause(void)
{
    if (!hak_is_at_home())
        return;
    hak_copy_look(); /* the first process of a new space of ids may be a copy of a first one */
    stop();
    if (!is_here()) {
        hak_os_thread_await_end(&threads[0]);
        hak_os_thread_await_end(&threads[1]);
    }
}

/* A confined program may not ask whether it is at home; none starts there. */
static void stop_for_good(void)
{
    if (!hak_copy_is_unnoticed() && (hak_os_is_confined() ? is_here() : hak_is_at_home()))
        stop();
}

void hak_background_resume(void)
{
    if (!hak_is_at_home())
        return;
    hak_copy_look();
    if (hak_load_relaxed(&pauses) == 0) /* in a copy that was made in between */
        return;
    if (hak_fetch_add_relaxed(&pauses, -1u) != 1)
        return;
    hak_fence_full(); /* partner: the fence in `leave` */
    hak_background_consider();
}

const struct os_thread *hak_background_thread(uint32_t place)
{
    return &threads[place % 2];
}

void hak_background_want(void)
{
    hak_settings_read(); /* not by the thread: a file that main opens has the number it had */
    hak_store_relaxed(&is_wanted, 1);
    hak_background_consider();
}

__attribute__((constructor)) static void be_at_home(void)
{
    hak_home_begin();
    hak_process_on_fork(forget);
    hak_os_identity_watch(hak_background_pause, hak_background_resume);
    hak_os_on_bare_exit(stop_for_good);
    hak_process_start();
    hak_stats_writer_start(hak_background_stir);
    if (hak_stats_writer_has_work())
        hak_background_want();
}
