/* SPDX-License-Identifier: MIT */
/* tests/race/api_race.c - malloc, realloc and free by threads that come and go, with blocks handed
 * from one to another; what was written before a free happens before the next use of the memory. */
#include "api/api.h"
#include "heap/cache_list.h"
#include "heap/census.h"
#include "parcel.h"
#include "process/reclaim.h"
#include "process/start.h"
#include "racers.h"
#include "stats/snapshot.h"
#include "stats/snapshot_take.h"

#define LANES 3u
#define SLOTS 64u
#define GENERATIONS 90u
#define OPERATIONS 400u

static _Atomic(struct parcel *) slots[SLOTS];
static _Atomic bool is_over;

static size_t draw_bytes(struct racer *racer)
{
    size_t ceiling = draw(racer) % 64 == 0 ? 400000 : (size_t)16 << draw(racer) % 10;
    return sizeof(struct parcel) + draw(racer) % ceiling;
}

static struct parcel *parcel_make(struct racer *racer)
{
    size_t bytes = draw_bytes(racer);
    struct parcel *parcel = draw(racer) % 4 == 0 ? hak_calloc(1, bytes) : hak_malloc(bytes);
    CHECK(parcel != NULL);
    parcel_fill(parcel, bytes, draw(racer));
    return parcel;
}

static void *live_and_die(void *argument)
{
    struct racer racer = {0, (uintptr_t)argument, NULL};
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        struct parcel *parcel = draw(&racer) % 8 < 5 ? parcel_make(&racer) : NULL;
        stumble(&racer);
        parcel = atomic_exchange(&slots[draw(&racer) % SLOTS], parcel);
        if (parcel == NULL)
            continue;
        size_t bytes = parcel->bytes;
        parcel_check(parcel, bytes);
        if (draw(&racer) % 4 == 0) {
            size_t new_bytes = draw_bytes(&racer);
            parcel = hak_realloc(parcel, new_bytes);
            CHECK(parcel != NULL);
            parcel_check(parcel, bytes < new_bytes ? bytes : new_bytes);
        }
        stumble(&racer);
        hak_free(parcel);
    }
    return NULL;
}

/* What a control thread may do at any time. */
static void *look_on(void *argument)
{
    (void)argument;
    while (!atomic_load(&is_over)) {
        struct snapshot snapshot;
        hak_snapshot_take(&snapshot, &(struct census){0});
        CHECK(snapshot.window_committed_bytes >= snapshot.span_clean_bytes);
        hak_reclaim_purge_all();
        hak_reclaim_trim(0);
        sched_yield();
    }
    return NULL;
}

static void run(void)
{
    pthread_t threads[LANES], onlooker = start_thread(look_on, NULL);
    for (uintptr_t i = 0; i < GENERATIONS + LANES; i++) {
        if (i >= LANES)
            join_thread(threads[i % LANES]);
        if (i < GENERATIONS)
            threads[i % LANES] = start_thread(live_and_die, (void *)(i + 1));
    }
    atomic_store(&is_over, true);
    join_thread(onlooker);
    for (uint32_t i = 0; i < SLOTS; i++)
        hak_free(atomic_exchange(&slots[i], NULL));
}

TEST(threads_that_come_and_go_share_blocks_without_a_race)
{
    CHECK(hak_process_start());
    run();
}

TEST(the_first_threads_may_start_the_process_together)
{
    run();
    uint32_t caches = 0;
    for (struct cache *i = hak_caches_first(); i != NULL; i = i->next)
        caches++;
    CHECK(caches <= LANES + 2);
}
