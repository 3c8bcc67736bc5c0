/* SPDX-License-Identifier: MIT */
/* tests/preload/late_exit_key.c - a process that has many keys of thread data before hakmem takes
 * its own: libc allocates when a thread sets one of a later block. If this fails, the first
 * allocation of a thread calls itself until its stack is full. */
#include "program.h"

#define KEYS_OF_A_BLOCK 32
#define THREADS 50

/* What libc calls itself. */
int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *));

/* This program's own comes before libc's. */
int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    for (int i = 0; i <= KEYS_OF_A_BLOCK; i++)
        if (__pthread_key_create(key, NULL) != 0)
            return EAGAIN;
    return __pthread_key_create(key, destructor);
}

static void *use(void *argument)
{
    (void)argument;
    return malloc(100);
}

TEST(threads_get_a_cache_though_libc_allocates_for_their_end)
{
    check_is_served();
    for (int i = 0; i < THREADS; i++) {
        void *block = in_thread(use, NULL);
        CHECK(block != NULL);
        free(block);
    }
}
