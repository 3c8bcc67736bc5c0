/* SPDX-License-Identifier: MIT */
/* tests/race/fence_race.c - threads take, hand over, resize and free fenced blocks, while others
 * ask about addresses there. */
#include "../check.h"

#include "api/api.h"
#include "base/atomic.h"
#include "misuse/fence.h"
#include "misuse/guarded.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS 6000
#define PLACES 96

__attribute__((constructor(101))) static void fence_all(void)
{
    setenv("HAKMEM_MODE", "fence", 1);
    setenv("HAKMEM_FENCE_QUARANTINE", "256K", 1); /* runs are used again soon */
}

static _Atomic(unsigned char *) places[PLACES];
static _Atomic uint32_t strange_count;

static size_t bytes_at(uint32_t place)
{
    return 1 + place * 97u;
}

/* Late answers are allowed, torn ones not. */
static void look_at(const unsigned char *block)
{
    struct guarded_view view;
    hak_guarded_look(block, &view);
    if (view.block == 0 || view.bytes > 20000)
        hak_fetch_add_relaxed(&strange_count, 1);
}

static void *race(void *seed)
{
    uint64_t random = (uint64_t)(uintptr_t)seed * 0x9e3779b97f4a7c15ull;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t place = (uint32_t)(random >> 33) % PLACES;
        size_t bytes = bytes_at(place);
        unsigned char *block = hak_malloc(bytes);
        if (!hak_fence_holds(block))
            CHECK(!"fenced");
        memset(block, (int)place, bytes);
        block = atomic_exchange_explicit(&places[place], block, memory_order_acq_rel);
        if (block == NULL)
            continue;
        if (block[0] != place || block[bytes - 1] != place ||
            hak_malloc_usable_size(block) != bytes)
            CHECK(!"another thread's block");
        if (random >> 63)
            block = hak_realloc(block, bytes + 1000);
        hak_free(block);
        look_at(block);
    }
    return NULL;
}

TEST(blocks_that_threads_hand_over_are_each_one_threads)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, race, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < PLACES; i++)
        hak_free(hak_load_relaxed(&places[i]));
    CHECK_EQ(strange_count, 0);
    CHECK_EQ(hak_fence_live_count(), 0);
    CHECK_EQ(hak_fence_live_bytes(), 0);
}

static void *free_it(void *block)
{
    hak_free(block);
    return NULL;
}

static void free_at_once(void *block)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, free_it, block), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

TEST(of_two_threads_that_free_a_block_one_is_found)
{
    for (int i = 0; i < 20; i++)
        CHECK_ABORTS(free_at_once(hak_malloc(100)), "hakmem: double free: pointer 0x");
}
