/* SPDX-License-Identifier: MIT */
/* tests/race/hardened_race.c - blocks change hands between threads in hardened mode: every one is
 * freed by another thread than the one that took it, beside neighbours that live and die. */
#include "../attack/hardened.h"
#include "base/atomic.h"
#include "process/reclaim.h"
#include "public.h"

#define RACERS 4
#define SLOTS 64
#define ROUNDS 20000

static _Atomic(char *) slots[SLOTS];

static void *exchange(void *argument)
{
    uint64_t random = (uintptr_t)argument * 0x9e3779b97f4a7c15ull + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        size_t bytes = 1 + (random >> 33) % 200;
        if (random >> 60 == 0)
            bytes = (random >> 33) % 300000;
        char *block = hak_malloc(bytes);
        CHECK(block != NULL);
        memset(block, (int)i, bytes);
        block = atomic_exchange(&slots[(random >> 20) % SLOTS], block);
        if (i % 3 == 0)
            block = hak_realloc(block, bytes + 1);
        hak_free(block);
    }
    return NULL;
}

TEST(blocks_that_change_hands_are_never_taken_for_misused)
{
    pthread_t threads[RACERS];
    start_threads(threads, RACERS, exchange);
    join_threads(threads, RACERS);
    for (size_t i = 0; i < SLOTS; i++)
        hak_free(atomic_load(&slots[i]));
    CHECK_ABORTS(hak_free((char *)hak_malloc(40) + 16), "hakmem: invalid free");
}

/* Each wave is of other classes than the one before, in granules that another thread has just
 * left. */
static void *come_and_go(void *argument)
{
    uint64_t random = (uintptr_t)argument * 0x9e3779b97f4a7c15ull + 1;
    for (int wave = 0; wave < 600; wave++) {
        char *blocks[8];
        for (size_t i = 0; i < 8; i++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            blocks[i] = hak_malloc(1 + (random >> 33) % 60000);
            CHECK(blocks[i] != NULL);
        }
        for (size_t i = 0; i < 8; i++)
            hak_free(blocks[i]);
        if (wave % 4 == 0)
            hak_reclaim_trim(0);
    }
    return NULL;
}

TEST(the_block_taken_last_is_looked_at_while_its_memory_serves_others)
{
    pthread_t threads[RACERS];
    start_threads(threads, RACERS, come_and_go);
    join_threads(threads, RACERS);
}

static _Atomic bool is_over;

/* Counts what waits and what gathers while its threads are at work on it. */
static void *count(void *argument HAK_UNUSED)
{
    while (!atomic_load(&is_over))
        stats_now();
    return NULL;
}

TEST(what_waits_is_counted_while_threads_free_it)
{
    pthread_t threads[RACERS], counter = start_thread(count, NULL);
    start_threads(threads, RACERS, exchange);
    join_threads(threads, RACERS);
    atomic_store(&is_over, true);
    join_thread(counter);
    for (size_t i = 0; i < SLOTS; i++)
        hak_free(atomic_load(&slots[i]));
}

static _Atomic int freers;

/* With the other one, as nearly at once as two threads can. */
static void *free_it(void *block)
{
    atomic_fetch_add(&freers, 1);
    while (atomic_load(&freers) < 2)
        hak_cpu_relax();
    hak_free(block);
    return NULL;
}

static void free_in_two_threads(size_t bytes)
{
    void *block = take_some(bytes);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        threads[i] = start_thread(free_it, block);
    join_threads(threads, 2);
}

TEST(of_two_threads_that_free_a_block_one_is_reported)
{
    for (int i = 0; i < 30; i++) {
        CHECK_ABORTS(free_in_two_threads(64), "free: pointer 0x");
        CHECK_ABORTS(free_in_two_threads(SPAN_BYTES), "free: pointer 0x");
    }
}
