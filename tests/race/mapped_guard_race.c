/* SPDX-License-Identifier: MIT */
/* tests/race/mapped_guard_race.c - threads take, hand over and free blocks with mappings of their
 * own, at addresses that the kernel gives to one after the other. */
#include "../check.h"
#include "api/api.h"
#include "base/atomic.h"
#include "misuse/guarded.h"
#include "process/start.h"
#include "racers.h"

#include <string.h>

#define THREADS 4u
#define PLACES 8u
#define ROUNDS 10000

static const struct guarded_trace nothing;
static _Atomic(unsigned char *) places[PLACES];

static void put(uint32_t place, unsigned char *block)
{
    size_t bytes = 20000 + 4096 * (size_t)place;
    if (block != NULL)
        block[0] = block[bytes - 1] = (unsigned char)place;
    block = atomic_exchange_explicit(&places[place], block, memory_order_acq_rel);
    if (block == NULL)
        return;
    CHECK(hak_guarded_holds(block));
    CHECK_EQ(hak_malloc_usable_size(block), bytes);
    CHECK(block[0] == place && block[bytes - 1] == place);
    hak_guarded_give(block, &nothing);
}

static void take_and_free(struct racer *racer)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t place = (uint32_t)draw(racer) % PLACES;
        unsigned char *block = hak_mapped_guard_take(20000 + 4096 * (size_t)place, 16, &nothing);
        CHECK(block != NULL);
        put(place, block);
    }
}

TEST(blocks_passed_between_threads_belong_to_one_thread_each)
{
    CHECK(hak_process_start());
    race_alike(THREADS, take_and_free);
    for (uint32_t i = 0; i < PLACES; i++)
        put(i, NULL);
    CHECK_EQ(hak_mapped_guards_used, 0);
    CHECK_EQ(hak_guarded_sum().count, 0);
}

#define TAKERS 2u
#define TURNS 5000u
#define POLLS 1000u

static _Atomic uint32_t arrived;

/* All come to the same free record in the same moment. */
static void take_together(struct racer *racer)
{
    (void)racer;
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
        hak_fetch_add_relaxed(&arrived, 1);
        for (uint32_t polls = 0; hak_load_relaxed(&arrived) < turn * TAKERS; polls++) {
            if (polls < POLLS)
                hak_cpu_relax();
            else
                sched_yield(); /* the other one may wait for this processor */
        }
        void *block = hak_mapped_guard_take(100, 16, &nothing);
        CHECK(hak_guarded_is_live(block));
        hak_guarded_give(block, &nothing);
    }
}

TEST(threads_that_come_together_get_a_record_each)
{
    CHECK(hak_process_start());
    race_alike(TAKERS, take_together);
    CHECK_EQ(hak_mapped_guards_used, 0);
}
