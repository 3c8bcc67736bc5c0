/* SPDX-License-Identifier: MIT */
/* tests/unit/region/huge_pace_test.c - slow huge pages are avoided, fast ones are asked for again.
 * If this fails, large heaps are slow in virtual machines, or have no huge pages. */
#include "region/huge_pace.h"

#include "check.h"

/* Of so many superslabs, how many were huge, where a timed one is slow or not. */
static uint32_t huge_of(struct huge_pace *pace, uint32_t superslabs, bool are_slow, uint32_t *timed)
{
    uint32_t huge = 0;
    for (uint32_t i = 0; i < superslabs; i++) {
        enum huge_turn turn = hak_huge_turn(pace);
        huge += turn != HUGE_TURN_SMALL;
        if (turn != HUGE_TURN_TIMED)
            continue;
        *timed += 1;
        hak_huge_timed(pace, are_slow);
    }
    return huge;
}

TEST(fast_ones_are_all_asked_for_and_few_are_timed)
{
    struct huge_pace pace = {0};
    uint32_t timed = 0;
    CHECK_EQ(huge_of(&pace, 800, false, &timed), 800);
    CHECK_EQ(timed, 800 / HAK_HUGE_TIMED_EVERY);
}

TEST(slow_ones_are_asked_for_ever_more_rarely)
{
    struct huge_pace pace = {0};
    uint32_t timed = 0;
    CHECK_EQ(huge_of(&pace, 1, true, &timed), 1);
    CHECK_EQ(huge_of(&pace, 1, true, &timed), 0);
    CHECK_EQ(huge_of(&pace, 4, true, &timed), 1);
    CHECK_EQ(huge_of(&pace, 8, true, &timed), 1);
    uint32_t huge = huge_of(&pace, 64 * 100, true, &timed);
    CHECK(huge >= 100 && huge <= 104);
    CHECK_EQ(timed, 3 + huge);
}

TEST(once_they_are_fast_again_they_are_asked_for_again)
{
    struct huge_pace pace = {0};
    uint32_t timed = 0;
    huge_of(&pace, 1000, true, &timed);
    CHECK_EQ(pace.pause, HAK_HUGE_PAUSE_MOST);
    CHECK(huge_of(&pace, HAK_HUGE_PAUSE_MOST + 1, false, &timed) >= 1);
    CHECK_EQ(huge_of(&pace, 500, false, &timed), 500);
    CHECK_EQ(pace.pause, 0);
}
