/* SPDX-License-Identifier: MIT */
/* tests/race/fence_race.c - threads take, hand over, resize and free fenced blocks, while others
 * ask about addresses there. */
#include "misuse/fence.h"
#include "misuse/guarded.h"
#include "places.h"

#include <stdlib.h>

#define THREADS 4
#define ROUNDS 6000

__attribute__((constructor(101))) static void fence_all(void)
{
    setenv("HAKMEM_MODE", "fence", 1);
    setenv("HAKMEM_FENCE_QUARANTINE", "256K", 1); /* runs are used again soon */
}

static _Atomic uint32_t strange_count;

static void check_fenced(const unsigned char *block)
{
    if (!hak_fence_holds(block))
        CHECK(!"fenced");
}

/* Late answers are allowed, torn ones not. */
static void look_at(const unsigned char *block)
{
    struct guarded_view view;
    hak_guarded_look(block, &view);
    if (view.block == 0 || view.bytes > 20000)
        hak_fetch_add_relaxed(&strange_count, 1);
}

static void take_and_free(struct racer *racer)
{
    for (int i = 0; i < ROUNDS; i++) {
        size_t bytes;
        unsigned char *block = place_exchange(racer, &bytes, check_fenced);
        if (block == NULL)
            continue;
        if (hak_malloc_usable_size(block) != bytes)
            CHECK(!"as many bytes as were asked for");
        look_at(place_free(racer, block, bytes));
    }
}

TEST(blocks_passed_between_threads_belong_to_one_thread_each)
{
    race_alike(THREADS, take_and_free);
    places_empty();
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
        threads[i] = start_thread(free_it, block);
    join_threads(threads, 2);
}

TEST(of_two_threads_that_free_a_block_one_is_found)
{
    for (int i = 0; i < 20; i++)
        CHECK_ABORTS(free_at_once(hak_malloc(100)), "hakmem: double free: pointer 0x");
}
