/* SPDX-License-Identifier: MIT */
/* tests/race/racers.h - threads that start together and stumble at random points.
 *
 * Owns        the starting line, each racer's random numbers, and stumble(), which gives the
 *             processor away now and then so that rare interleavings come up on few processors,
 *             too.
 * Invariants  a race ends when every racer has returned.
 * Threads     as named.
 * Tests       tests/race/
 */
#ifndef TESTS_RACE_RACERS_H
#define TESTS_RACE_RACERS_H

#include "../threads.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#define RACERS_MOST 16u

struct racer {
    uint32_t index;
    uint64_t random;
    void (*body)(struct racer *racer);
};

static pthread_barrier_t racers_line;

static inline uint64_t draw(struct racer *racer)
{
    racer->random = racer->random * 6364136223846793005ull + 1442695040888963407ull;
    return racer->random >> 24;
}

/* A point where another thread may come in between. */
static inline void stumble(struct racer *racer)
{
    uint64_t choice = draw(racer) % 64;
    if (choice < 3)
        sched_yield();
    for (volatile uint32_t i = 0; choice >= 60 && i < 50; i++) {
    }
}

static inline void *racer_run(void *argument)
{
    struct racer *racer = argument;
    pthread_barrier_wait(&racers_line);
    racer->body(racer);
    return NULL;
}

/* Runs bodies[i] in the i-th of `count` threads until all have returned. */
static inline void race(uint32_t count, void (*const *bodies)(struct racer *racer))
{
    pthread_t threads[RACERS_MOST];
    struct racer racers[RACERS_MOST];
    CHECK(count <= RACERS_MOST);
    CHECK_EQ(pthread_barrier_init(&racers_line, NULL, count), 0);
    for (uint32_t i = 0; i < count; i++) {
        racers[i] = (struct racer){i, 0x9e3779b97f4a7c15ull * (i + 1), bodies[i]};
        threads[i] = start_thread(racer_run, &racers[i]);
    }
    join_threads(threads, count);
    pthread_barrier_destroy(&racers_line);
}

/* Runs `body` in `count` threads. */
static inline void race_alike(uint32_t count, void (*body)(struct racer *racer))
{
    void (*bodies[RACERS_MOST])(struct racer *racer);
    for (uint32_t i = 0; i < RACERS_MOST; i++)
        bodies[i] = body;
    race(count, bodies);
}

#endif
