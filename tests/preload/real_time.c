/* SPDX-License-Identifier: MIT */
/* tests/preload/real_time.c - a real-time thread that allocates beside ordinary ones, on one
 * processor, where a real-time thread of middle priority takes the processor for a fifth of a
 * second at a time. If this fails, a program with deadlines misses them: a call waits for an
 * ordinary thread that does not run. */
#include "program.h"

#include <malloc.h>

#define ORDINARY 3
#define MIDDLE 10
#define HIGH 20
#define HOGS 12
#define HOG_MS 200
#define PAUSE_MS 30
#define SOON_MS 100

static _Atomic int has_ended, is_hogged;
static _Atomic uint64_t longest_ms, call_count;

static pthread_t start_with(void *(*body)(void *), int priority)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct sched_param parameter = {priority};
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, priority == 0 ? SCHED_OTHER : SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &parameter);
    CHECK_EQ(pthread_create(&thread, &attributes, body, NULL), 0);
    return thread;
}

/* Of all kinds, through every lock: new slabs, spans, large blocks. */
static void allocate(unsigned *state)
{
    void *blocks[64];
    for (unsigned i = 0; i < 64; i++) {
        blocks[i] = hidden(malloc(next_random(state) % 4 == 0 ? 200000 + random_bytes(state)
                                                              : random_bytes(state)));
        CHECK(blocks[i] != NULL);
    }
    for (unsigned i = 0; i < 64; i++)
        free(blocks[i]);
}

static void *be_ordinary(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument + 1;
    while (!has_ended) {
        allocate(&state);
        if (next_random(&state) % 64 == 0)
            malloc_trim(0);
    }
    return NULL;
}

static void *hog(void *unused)
{
    for (unsigned i = 0; i < HOGS; i++) {
        uint64_t end_ms = now_ms() + HOG_MS;
        is_hogged = 1;
        while (now_ms() < end_ms)
            ;
        is_hogged = 0;
        sleep_ms(PAUSE_MS);
    }
    has_ended = 1;
    return unused;
}

static void *be_urgent(void *unused)
{
    unsigned state = 99;
    while (!has_ended) {
        uint64_t start_ms = now_ms();
        allocate(&state);
        uint64_t took_ms = now_ms() - start_ms;
        if (took_ms > longest_ms)
            longest_ms = took_ms;
        call_count += 128;
        sleep_ms(2);
    }
    return unused;
}

TEST(a_real_time_thread_does_not_wait_for_one_of_middle_priority)
{
    pthread_t ordinary[ORDINARY];
    struct sched_param parameter = {HIGH + 1};
    time_limit(60);
    check_is_served();
    run_on_processor(0);
    if (sched_setscheduler(0, SCHED_FIFO, &parameter) != 0)
        SKIP("real-time threads are not permitted");
    for (unsigned i = 0; i < ORDINARY; i++)
        ordinary[i] = start_with(be_ordinary, 0);
    pthread_t high = start_with(be_urgent, HIGH);
    sleep_ms(PAUSE_MS);
    pthread_t middle = start_with(hog, MIDDLE);
    pthread_join(middle, NULL);
    pthread_join(high, NULL);
    for (unsigned i = 0; i < ORDINARY; i++)
        pthread_join(ordinary[i], NULL);
    CHECK(call_count > 1000);
    if (longest_ms >= SOON_MS)
        CHECK_FAILED("128 calls took %lu ms", (unsigned long)longest_ms);
}
