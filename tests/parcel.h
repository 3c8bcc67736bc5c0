/* SPDX-License-Identifier: MIT */
/* tests/parcel.h - blocks that threads hand to one another, which say what is in them.
 *
 * Owns        nothing.
 * Invariants  the rest of a parcel is a function of its seed and the position.
 * Threads     the one that has the parcel.
 * Tests       tests/model/threads_test.c, tests/race/api_race.c, tests/fuzz/threads_fuzz.c
 */
#ifndef TESTS_PARCEL_H
#define TESTS_PARCEL_H

#include "check.h"

#include <stdint.h>

struct parcel {
    size_t bytes;
    uint64_t seed;
    unsigned char rest[];
};

/* The position after `at` that is written: all of the first KiB, then one here and there. */
static inline size_t parcel_position_after(size_t at)
{
    return at < 1024 ? at + 1 : at + 1021;
}

static inline unsigned char parcel_byte_at(uint64_t seed, size_t position)
{
    return (unsigned char)(((seed ^ position) * 0x9e3779b97f4a7c15ull) >> 56);
}

static inline void parcel_fill(struct parcel *parcel, size_t bytes, uint64_t seed)
{
    parcel->bytes = bytes;
    parcel->seed = seed;
    for (size_t i = 0; i < bytes - sizeof *parcel; i = parcel_position_after(i))
        parcel->rest[i] = parcel_byte_at(seed, i);
}

/* Its first `bytes` are as they were filled. */
static inline void parcel_check(const struct parcel *parcel, size_t bytes)
{
    for (size_t i = 0; i < bytes - sizeof *parcel; i = parcel_position_after(i))
        if (parcel->rest[i] != parcel_byte_at(parcel->seed, i))
            CHECK_FAILED("parcel %p of %zu bytes is damaged at %zu", (const void *)parcel, bytes,
                         i);
    CHECK_PASSED();
}

#endif
