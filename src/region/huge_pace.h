/* SPDX-License-Identifier: MIT */
/* region/huge_pace.h - whether huge pages come fast enough to be asked for.
 *
 * A huge page saves 512 faults, but may have to be found first: the kernel moves other pages out of
 * the way, or, in a virtual machine, the host has taken the memory back and supplies it in small
 * pages. Then it takes many times as long as the faults. Some huge pages are timed; after a slow
 * one the next ones are not asked for, more of them each time.
 *
 * Owns        nothing.
 * Invariants  after n slow ones in a row 2^n - 1 superslabs, or large blocks, are small, at most
 *             HAK_HUGE_PAUSE_MOST.
 * Threads     the holder of the lock that guards the pace; hak_huge_is_slow: any.
 * Tests       tests/unit/region/huge_pace_test.c, tests/unit/heap/supply_test.c
 */
#ifndef HAK_REGION_HUGE_PACE_H
#define HAK_REGION_HUGE_PACE_H

#include "base/bits.h"
#include "region/region.h"

#define HAK_HUGE_PAUSE_MOST 63u
/* Of fast superslabs one in so many is timed: it is touched under the growth lock. Of large blocks
 * each one is, without a lock. */
#define HAK_HUGE_TIMED_EVERY 8u

struct huge_pace {
    uint32_t pause;   /* that were small after the last slow one */
    uint32_t small;   /* of these, those to come */
    uint32_t untimed; /* huge ones to come before one is timed */
};

enum huge_turn { HUGE_TURN_SMALL, HUGE_TURN_UNTIMED, HUGE_TURN_TIMED };

/* Touches the first page of what is to be huge; true: that took `huge_slow_us` or longer. */
bool hak_huge_is_slow(uint32_t granule);

/* For one that deserves huge pages. */
HAK_INLINE enum huge_turn hak_huge_turn(struct huge_pace *pace)
{
    if (pace->small > 0) {
        pace->small--;
        return HUGE_TURN_SMALL;
    }
    if (pace->untimed > 0) {
        pace->untimed--;
        return HUGE_TURN_UNTIMED;
    }
    return HUGE_TURN_TIMED;
}

/* The one whose turn was to be timed was slow, or not. */
HAK_INLINE void hak_huge_timed(struct huge_pace *pace, bool was_slow)
{
    pace->pause =
        was_slow ? (uint32_t)hak_least(2 * pace->pause + 1, HAK_HUGE_PAUSE_MOST) : pace->pause / 2;
    pace->small = was_slow ? pace->pause : 0;
    pace->untimed = was_slow ? 0 : HAK_HUGE_TIMED_EVERY - 1;
}

#endif
