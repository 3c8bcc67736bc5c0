/* SPDX-License-Identifier: MIT */
/* tests/race/sampled_guard_race.c - threads take, hand over and free guarded blocks, of which
 * there are fewer than they want. */
#include "misuse/guarded.h"
#include "misuse/harden.h"
#include "misuse/sampled_guard.h"
#include "places.h"

#include <stdlib.h>

#define THREADS 4
#define ROUNDS 20000

__attribute__((constructor(101))) static void guard_all(void)
{
    setenv("HAKMEM_GUARD_RATE", "1", 1);
}

static _Atomic uint32_t guarded_count;

static void count_guarded(const unsigned char *block)
{
    if (hak_guarded_holds(block))
        hak_fetch_add_relaxed(&guarded_count, 1);
}

static void take_and_free(struct racer *racer)
{
    for (int i = 0; i < ROUNDS; i++) {
        size_t bytes;
        unsigned char *block = place_exchange(racer, &bytes, count_guarded);
        if (block == NULL)
            continue;
        if (hak_malloc_usable_size(block) < bytes)
            CHECK(!"room for what was asked for");
        place_free(racer, block, bytes);
    }
    hak_thread_flush();
}

TEST(blocks_passed_between_threads_belong_to_one_thread_each)
{
    race_alike(THREADS, take_and_free);
    places_empty();
    if (hak_harden_has(HARDEN_EXACT))
        SKIP("hardened mode has guards of its own");
    CHECK(guarded_count > 0);
    CHECK_EQ(hak_guarded_sum().count, 0);
    CHECK_EQ(hak_guarded_sum().bytes, 0);
}
