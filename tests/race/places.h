/* SPDX-License-Identifier: MIT */
/* tests/race/places.h - racers that hand blocks over to one another at shared places.
 *
 * Owns        the places, each for blocks of one size, which its number says, as do their bytes.
 * Invariants  a block lies at one place, or belongs to one racer.
 * Threads     as named.
 * Tests       tests/race/fence_race.c, tests/race/sampled_guard_race.c
 */
#ifndef TESTS_RACE_PLACES_H
#define TESTS_RACE_PLACES_H

#include "api/api.h"
#include "base/atomic.h"
#include "racers.h"

#include <string.h>

#define PLACES 96u

static _Atomic(unsigned char *) places[PLACES];

/* Leaves a new block, which `see` has looked at, at a random place. Returns the block that was
 * there, with its bytes checked, or NULL. Any racer calls it; the exchange hands blocks over. */
static inline unsigned char *place_exchange(struct racer *racer, size_t *bytes,
                                            void (*see)(const unsigned char *block))
{
    uint32_t place = (uint32_t)draw(racer) % PLACES;
    *bytes = 1 + place * 97u;
    unsigned char *block = hak_malloc(*bytes);
    see(block);
    memset(block, (int)place, *bytes);
    block = atomic_exchange_explicit(&places[place], block, memory_order_acq_rel);
    if (block != NULL && (block[0] != place || block[*bytes - 1] != place))
        CHECK(!"another thread's block");
    return block;
}

/* Frees a block, every second one after a resize. Returns the last address of the block. */
static inline unsigned char *place_free(struct racer *racer, unsigned char *block, size_t bytes)
{
    if (draw(racer) & 1)
        block = hak_realloc(block, bytes + 1000);
    hak_free(block);
    return block;
}

/* Frees what is left, after the race. */
static inline void places_empty(void)
{
    for (uint32_t i = 0; i < PLACES; i++)
        hak_free(hak_load_relaxed(&places[i]));
}

#endif
