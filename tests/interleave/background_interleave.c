/* SPDX-License-Identifier: MIT */
/* tests/interleave/background_interleave.c - the background thread falls asleep, wakes, ends and
 * begins again while others work: there is one at most, none in a pause, and what was freed last is
 * seen by it. All around it is the harness's. */
#include "../check.h"
#include "base/limits.h"
#include "interleave.h"
#include "os/home.h"
#include "os/os.h"
#include "process/background.h"
#include "quiet_process.h"
#include "region/region.h"
#include "stats/counters.h"

/* Where the two records of such threads stand: the bodies behind the others. */
#define FIRST_PLACE 3u
static struct place {
    void (*run)(void);
    uint32_t stack; /* of one thread at a time */
} places[2];

static uint32_t visits;      /* by one thread at a time */
static uint32_t patience_ms; /* 0: it ends when it has nothing to do, and sleeps otherwise */
static uint32_t late;        /* the bodies that begin at the visit after which it does */
#define CALM_VISITS 8u
/* What the locks of free memory guard: whoever looks sees it as it is. And how many threads there
 * are. */
static uint32_t freed_count, seen_count, here_count;

#define UNSEEN __attribute__((no_sanitize("thread"))) /* by the checker */

static UNSEEN void note_freed(void)
{
    freed_count++;
}

static UNSEEN void note_seen(void)
{
    seen_count = freed_count;
}

static UNSEEN void note_here(uint32_t change)
{
    here_count += change;
}

static UNSEEN bool is_here(void)
{
    return here_count != 0;
}

static UNSEEN void forget(void)
{
    freed_count = seen_count = here_count = 0;
}

static UNSEEN bool all_is_seen(void)
{
    return seen_count == freed_count;
}

/* What the thread does at a visit. */
size_t hak_reclaim_visit(bool *is_done)
{
    note_seen();
    if (++visits == CALM_VISITS)
        for (uint32_t i = 1; i < FIRST_PLACE; i++)
            if ((late & BODY_BIT(i)) != 0)
                interleave_begin(i);
    *is_done = true;
    return 0;
}

static struct os_thread *record_of(uint32_t place)
{
    return (struct os_thread *)(uintptr_t)hak_background_thread(place);
}

static void stand_in(uint32_t number)
{
    struct place *place = &places[number];
    for (;;) {
        interleave_wait_to_begin();
        note_here(1);
        place->stack++;
        place->run();
        place->stack++;
        note_here(-1u);
        hak_store_release(&record_of(number)->id, 0); /* as the kernel does */
        hak_os_futex_wake(&record_of(number)->id, 1);
    }
}

static void stand_in_first(void)
{
    stand_in(0);
}

static void stand_in_second(void)
{
    stand_in(1);
}

bool hak_os_thread_start(struct os_thread *thread, void (*run)(void), const void *variable)
{
    uint32_t number = thread != record_of(0);
    (void)variable;
    places[number].stack = 0;
    places[number].run = run;
    hak_store_relaxed(&thread->id, 1);
    interleave_begin(FIRST_PLACE + number);
    return true;
}

/* Until it is over, without a time-out. Who asks again and again lets others go on. */
void hak_os_thread_await(const struct os_thread *thread, uint32_t timeout_ms)
{
    (void)timeout_ms;
    if (hak_load_relaxed(&thread->id) == 0)
        hak_os_yield();
    else
        hak_os_futex_wait((_Atomic uint32_t *)(uintptr_t)&thread->id, 1, 0);
}

uint32_t hak_stats_writer_patience_ms(void)
{
    return patience_ms;
}

#define PLACES BODY_BIT(FIRST_PLACE) | BODY_BIT(FIRST_PLACE + 1)
#define OTHERS BODY_BIT(1) | BODY_BIT(2)

/* A program of several threads, with free memory. */
static void begin(void)
{
    forget();
    hak_home_begin();
    interleave_let_wait(late | PLACES);
    interleave_end_waits(100); /* as between two visits */
    hak_store_relaxed(&hak_region.committed_bytes, HAK_GIB);
    hak_store_relaxed(&hak_active_caches, 2);
    hak_store_relaxed(&hak_stat_globals.threads_started, 2);
}

static void run(void)
{
    begin();
    hak_background_consider();
}

static void run_to_the_end(void)
{
    late = OTHERS;
    run();
}

static void run_until_it_sleeps(void)
{
    patience_ms = 1000;
    run_to_the_end();
}

/* It is too small for visits: a thread only reads the settings. */
static void begin_small(void)
{
    begin();
    hak_store_relaxed(&hak_region.committed_bytes, 20 * HAK_MIB);
    hak_store_relaxed(&hak_settings_were_read, 0);
}

static void count(void)
{
    note_freed();
    hak_fetch_add_relaxed(&hak_stat_cacheless.counters[HAK_STAT_spans_given], 1);
}

static void work(void)
{
    count();
    hak_background_wake();
}

static void free_large_late(void)
{
    interleave_wait_to_begin();
    note_freed();
    hak_stat_add_for(NULL, spans_given, 1);
    hak_background_consider();
}

static void work_late(void)
{
    interleave_wait_to_begin();
    work();
}

static void pause_and_resume(void)
{
    hak_background_pause();
    MUST(!is_here());
    hak_os_yield(); /* others could start one */
    MUST(!is_here());
    hak_background_resume();
}

static void pause_late(void)
{
    interleave_wait_to_begin();
    pause_and_resume();
}

static void all_was_seen(void)
{
    MUST(all_is_seen());
}

static void none(void)
{
}

#define STAND stand_in_first, stand_in_second

static const struct harness harnesses[] = {
    {"it falls asleep", run_until_it_sleeps, {work_late, none, STAND}, all_was_seen, 2, 0, 0},
    {"it falls asleep, oddly",
     run_until_it_sleeps,
     {work_late, none, STAND},
     all_was_seen,
     1,
     1,
     0},
    {"it ends", run_to_the_end, {work_late, none, STAND}, all_was_seen, 1, 1, 0},
    {"a large block as it falls asleep",
     run_until_it_sleeps,
     {free_large_late, none, STAND},
     all_was_seen,
     1,
     1,
     0},
    {"a large block as it ends",
     run_to_the_end,
     {free_large_late, none, STAND},
     all_was_seen,
     1,
     1,
     0},
    {"two work as it ends", run_to_the_end, {work_late, work_late, STAND}, all_was_seen, 1, 0, 0},
    {"it begins", begin, {work, work, STAND}, all_was_seen, 1, 0, 0},
    {"a pause", run, {pause_and_resume, none, STAND}, NULL, 1, 0, 0},
    {"a pause as it ends", run_to_the_end, {pause_late, none, STAND}, NULL, 1, 1, 0},
    {"a pause as it falls asleep", run_until_it_sleeps, {pause_late, none, STAND}, NULL, 1, 1, 0},
    {"a pause as it begins",
     begin_small,
     {hak_background_wake, pause_and_resume, STAND},
     NULL,
     1,
     2,
     0},
    {"work and a pause", begin, {work, pause_and_resume, STAND}, all_was_seen, 1, 1, 0},
    {"work and a pause as it ends",
     run_to_the_end,
     {work_late, pause_late, STAND},
     all_was_seen,
     1,
     0,
     0},
    {"two pauses", begin, {pause_and_resume, pause_and_resume, STAND}, NULL, 1, 0, 0},
};
#define HARNESS_COUNT (sizeof harnesses / sizeof *harnesses)

TEST(what_was_freed_last_is_seen_and_no_two_look_at_once)
{
    CHECK(interleave_hold(harnesses, HARNESS_COUNT));
}

TEST(every_order_of_the_background_thread_is_needed)
{
    static const struct kept_order kept[] = {
        {"stop futex wake: left out", "the wait that it ends has a time-out of 100 ms at most"},
        {NULL, NULL}};
    CHECK(interleave_needs_orders("process/background. os/thread.h background_interleave.",
                                  harnesses, HARNESS_COUNT, kept));
}
