/* SPDX-License-Identifier: MIT */
/* tests/race/sampled_guard_race.c - threads take, hand over and free guarded blocks, of which
 * there are fewer than they want. */
#include "../check.h"

#include "api/api.h"
#include "base/atomic.h"
#include "misuse/guarded.h"
#include "misuse/harden.h"
#include "misuse/sampled_guard.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS 20000
#define PLACES 96

__attribute__((constructor(101))) static void guard_all(void)
{
    setenv("HAKMEM_GUARD_RATE", "1", 1);
}

static _Atomic(unsigned char *) places[PLACES];
static _Atomic uint32_t guarded_count;

static size_t bytes_at(uint32_t place)
{
    return 1 + place * 97u;
}

static void *race(void *seed)
{
    uint64_t random = (uint64_t)(uintptr_t)seed * 0x9e3779b97f4a7c15ull;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t place = (uint32_t)(random >> 33) % PLACES;
        size_t bytes = bytes_at(place);
        unsigned char *block = hak_malloc(bytes);
        if (hak_guarded_holds(block))
            hak_fetch_add_relaxed(&guarded_count, 1);
        memset(block, (int)place, bytes);
        block = atomic_exchange_explicit(&places[place], block, memory_order_acq_rel);
        if (block == NULL)
            continue;
        if (block[0] != place || block[bytes - 1] != place || hak_malloc_usable_size(block) < bytes)
            CHECK(!"another thread's block");
        if (random >> 63)
            block = hak_realloc(block, bytes + 1000);
        hak_free(block);
    }
    hak_thread_flush();
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
    if (hak_harden_has(HARDEN_EXACT))
        SKIP("hardened mode has guards of its own");
    CHECK(guarded_count > 0);
    CHECK_EQ(hak_guarded_sum().count, 0);
    CHECK_EQ(hak_guarded_sum().bytes, 0);
}
