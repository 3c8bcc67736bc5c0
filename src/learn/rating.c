/* SPDX-License-Identifier: MIT */
#include "learn/rating.h"

#include "base/bits.h"

/* 1 / (1 + 10 ^ (-points / 400)) in thousandths, for every 50 points. */
#define STEP 50000
static const int16_t expected[] = {500, 571, 640, 703, 760, 808, 849, 882, 909,
                                   930, 947, 960, 969, 977, 983, 987, 990};
#define STEPS ((int32_t)(sizeof expected / sizeof *expected) - 1)

/* Points of a match. */
#define POINTS 24
/* Points of curiosity, times sqrt(ln(all) / own). */
#define CURIOSITY 200

int32_t hak_rating_expected(int32_t distance)
{
    if (distance < 0)
        return 1000 - hak_rating_expected(-distance);
    if (distance >= STEPS * STEP)
        return expected[STEPS];
    int32_t step = distance / STEP, rest = distance % STEP;
    return expected[step] + (expected[step + 1] - expected[step]) * rest / STEP;
}

int32_t hak_rating_gain(int32_t own, int32_t other, int32_t score)
{
    return POINTS * (score - hak_rating_expected(own - other));
}

static uint64_t root_of(uint64_t square)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit != 0; bit >>= 1)
        if ((root | bit) * (root | bit) <= square)
            root |= bit;
    return root;
}

/* Thousandths of ln(number): the logarithm of 2 for each doubling, and a straight line between. */
static uint64_t log_of(uint32_t number)
{
    uint32_t doublings = hak_bit_highest(number);
    uint64_t rest = ((uint64_t)number << 10 >> doublings) - 1024;
    return (doublings * 1024u + rest) * 693 / 1024;
}

int32_t hak_rating_curiosity(uint32_t matches, uint32_t all_matches)
{
    if (matches == 0)
        return INT32_MAX / 2;
    uint64_t square = log_of(all_matches < 2 ? 2 : all_matches) * 1000 / matches;
    return (int32_t)(CURIOSITY * root_of(square));
}
