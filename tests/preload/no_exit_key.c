/* SPDX-License-Identifier: MIT */
/* tests/preload/no_exit_key.c - threads in a process that has no key for their end: with glibc
 * before 2.34, one that loaded the thread library late; here, one that refuses keys. Nobody could
 * park such a thread's heap, so it has none. If this fails, each thread of such a program leaves a
 * heap behind for ever. */
#include "program.h"

#define THREADS 200

/* This program's own comes before libc's. */
int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    (void)key;
    (void)destructor;
    return EAGAIN;
}

static void *use(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    void *blocks[100];
    for (unsigned i = 0; i < 100; i++) {
        blocks[i] = malloc(1 + i * 50);
        CHECK(blocks[i] != NULL);
        fill(blocks[i], 1 + i * 50, seed + i);
    }
    for (unsigned i = 0; i < 100; i++) {
        CHECK(is_filled(blocks[i], 1 + i * 50, seed + i));
        free(blocks[i]);
    }
    return malloc(100);
}

PART(what_runs_many_threads)
{
    for (uintptr_t i = 0; i < THREADS; i++)
        free(in_thread(use, (void *)i));
}

TEST(threads_without_a_key_leave_no_heap_behind)
{
    int fd;
    check_is_served();
    setenv("HAKMEM_CACHES", "thread", 1); /* a processor's need no key */
    run_with_statistics("what_runs_many_threads", &fd);
    CHECK_EQ(counter_in(fd, "fallback"), 0);
    CHECK_EQ(counter_in(fd, "threads_started"), 1);
    CHECK(counter_in(fd, "heaps_created") <= 3);
    CHECK(counter_in(fd, "cacheless_calls") >= THREADS);
}
