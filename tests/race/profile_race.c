/* SPDX-License-Identifier: MIT */
/* tests/race/profile_race.c - threads sample, hand over and free blocks, while another one looks
 * after the board, and sampling goes on and off. */
#include "../check.h"

#include "api/api.h"
#include "base/atomic.h"
#include "policy/option.h"
#include "process/start.h"
#include "profile/profile.h"
#include "profile/sampler.h"
#include "profile/show.h"
#include "race/racers.h"

#include <stdlib.h>

#define ROUNDS 60000
#define PLACES 96

static _Atomic(unsigned char *) places[PLACES];
static _Atomic uint32_t over_count;

static void work(struct racer *racer)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t random = draw(racer);
        uint32_t place = (uint32_t)(random % PLACES);
        size_t bytes = 1 + place * 97u + (i % 100 == 0 ? 150000 : 0);
        unsigned char *block = hak_malloc(bytes);
        block[0] = block[bytes - 1] = (unsigned char)place;
        block = atomic_exchange_explicit(&places[place], block, memory_order_acq_rel);
        if (block == NULL)
            continue;
        CHECK_EQ(block[0], place);
        if (random >> 20 & 1)
            block = hak_realloc(block, bytes + 1000);
        hak_free(block);
    }
    hak_thread_flush();
    hak_fetch_add_relaxed(&over_count, 1);
}

static void look_after(struct racer *racer)
{
    (void)racer;
    for (int i = 0; hak_load_relaxed(&over_count) < 3; i++) {
        hak_show_update_oldest();
        if (i % 64 == 1)
            hak_profile_start(500 + (uint64_t)i % 5000);
        if (i % 64 == 0)
            hak_profile_stop();
        for (uint32_t k = 0; k < hak_sites_count(); k++)
            if (hak_sites_at(k) != NULL && k != 0)
                CHECK(hak_sites_at(k)->frame_count <= HAK_BOARD_FRAMES);
    }
}

TEST(samples_passed_between_threads_end_once)
{
    void (*bodies[])(struct racer *) = {work, work, work, look_after};
    CHECK(hak_process_start());
    CHECK_EQ(hak_option_change("heap_profile_samples", "0"), OPTION_CHANGED);
    hak_profile_start(1000);
    race(4, bodies);
    hak_profile_start(1);
    for (int i = 0; i < PLACES; i++)
        hak_free(places[i]);
    uint64_t samples = 0, ended = 0;
    for (uint32_t i = 0; i < hak_sites_count(); i++) {
        if (hak_sites_at(i) == NULL)
            continue;
        samples += hak_load_relaxed(&hak_sites_at(i)->samples);
        ended += hak_load_relaxed(&hak_sites_at(i)->ended_samples);
    }
    CHECK(samples > 1000);
    CHECK_EQ(ended, samples);
}
