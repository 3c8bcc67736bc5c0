/* SPDX-License-Identifier: MIT */
/* tests/threads.h - threads that must start, and end.
 *
 * Owns        nothing.
 * Invariants  none.
 * Threads     any.
 * Tests       those that include it.
 */
#ifndef TESTS_THREADS_H
#define TESTS_THREADS_H

#include "check.h"

#include <pthread.h>
#include <stdint.h>

static inline pthread_t start_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, body, argument), 0);
    return thread;
}

/* Waits for its end; what it returned. */
static inline void *join_thread(pthread_t thread)
{
    void *result;
    CHECK_EQ(pthread_join(thread, &result), 0);
    return result;
}

/* Runs the body in a thread of its own, which has ended when this returns what it returned. */
static inline void *in_thread(void *(*body)(void *), void *argument)
{
    return join_thread(start_thread(body, argument));
}

/* Each has its number for an argument, from 1 on. */
static inline void start_threads(pthread_t *threads, uintptr_t count, void *(*body)(void *))
{
    for (uintptr_t i = 0; i < count; i++)
        threads[i] = start_thread(body, (void *)(i + 1));
}

static inline void join_threads(const pthread_t *threads, uintptr_t count)
{
    for (uintptr_t i = 0; i < count; i++)
        join_thread(threads[i]);
}

#endif
