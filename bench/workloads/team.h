/* SPDX-License-Identifier: MIT */
/* bench/workloads/team.h - threads that start together, and the time from first start to last end.
 *
 * Owns        the threads while they run.
 * Invariants  no member starts before all exist; when bench_team_run returns all have ended.
 * Threads     bench_team_run is called by one thread at a time.
 * Tests       tests/tools/test_workloads.py
 */
#ifndef BENCH_WORKLOADS_TEAM_H
#define BENCH_WORKLOADS_TEAM_H

#include "bench.h"

#include <pthread.h>

/* Of threads that are many. */
#define BENCH_SMALL_STACK_BYTES ((size_t)256 << 10)

struct bench_member {
    void (*work)(void *argument);
    void *argument;
    pthread_barrier_t *start;
    uint64_t start_ns;
    uint64_t end_ns;
    pthread_t thread;
};

/* Starts one thread; ends the run if there can be none. */
static inline void bench_thread_start(pthread_t *thread, void *(*function)(void *), void *argument)
{
    int error = pthread_create(thread, NULL, function, argument);
    if (error != 0) {
        bench_fail("cannot start a thread: %s", strerror(error));
    }
}

/* The same for `count` threads with small stacks, each with its element of `arguments`. */
static inline void bench_crowd_start(pthread_t *threads, uint64_t count, void *(*function)(void *),
                                     void *arguments, size_t argument_bytes)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, BENCH_SMALL_STACK_BYTES);
    for (uint64_t i = 0; i < count; i++) {
        void *argument = (char *)arguments + i * argument_bytes;
        int error = pthread_create(&threads[i], &attributes, function, argument);
        if (error != 0) {
            bench_fail("cannot start thread %" PRIu64 ": %s", i, strerror(error));
        }
    }
    pthread_attr_destroy(&attributes);
}

static inline void *bench_member_main(void *argument)
{
    struct bench_member *member = argument;
    pthread_barrier_wait(member->start);
    member->start_ns = bench_now_ns();
    member->work(member->argument);
    member->end_ns = bench_now_ns();
    return NULL;
}

/* Calls `work` in `count` threads, each with its element of `arguments`; returns nanoseconds. */
static inline uint64_t bench_team_run(uint32_t count, void (*work)(void *), void *arguments,
                                      size_t argument_bytes)
{
    struct bench_member *members = bench_table(count, sizeof(*members));
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, count);
    for (uint32_t i = 0; i < count; i++) {
        members[i].work = work;
        members[i].argument = (char *)arguments + i * argument_bytes;
        members[i].start = &start;
        bench_thread_start(&members[i].thread, bench_member_main, &members[i]);
    }
    uint64_t first_ns = UINT64_MAX;
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(members[i].thread, NULL);
        first_ns = members[i].start_ns < first_ns ? members[i].start_ns : first_ns;
        last_ns = members[i].end_ns > last_ns ? members[i].end_ns : last_ns;
    }
    pthread_barrier_destroy(&start);
    free(members);
    return last_ns - first_ns;
}

#endif
