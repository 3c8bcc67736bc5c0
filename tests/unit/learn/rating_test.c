/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/rating_test.c - Elo's arithmetic. */
#include "learn/rating.h"

#include "check.h"

TEST(expectations_of_both_sides_add_up)
{
    for (int32_t distance = -1000000; distance <= 1000000; distance += 777)
        CHECK_EQ(hak_rating_expected(distance) + hak_rating_expected(-distance), 1000);
    CHECK_EQ(hak_rating_expected(0), 500);
    CHECK_EQ(hak_rating_expected(400000), 909);
    CHECK(hak_rating_expected(25000) > 530 && hak_rating_expected(25000) < 540);
}

TEST(a_match_moves_points_from_one_to_the_other)
{
    CHECK_EQ(hak_rating_gain(1500000, 1500000, 1000), 12000);
    CHECK_EQ(hak_rating_gain(1500000, 1500000, 0), -12000);
    CHECK_EQ(hak_rating_gain(1500000, 1500000, 500), 0);
    CHECK(hak_rating_gain(1900000, 1500000, 1000) < hak_rating_gain(1500000, 1900000, 1000));
    for (int32_t score = 0; score <= 1000; score += 500)
        CHECK_EQ(hak_rating_gain(1600000, 1500000, score),
                 -hak_rating_gain(1500000, 1600000, 1000 - score));
}

TEST(values_with_few_matches_have_the_most_curiosity)
{
    CHECK(hak_rating_curiosity(0, 100) > hak_rating_curiosity(1, 100));
    CHECK(hak_rating_curiosity(1, 100) > hak_rating_curiosity(2, 100));
    CHECK(hak_rating_curiosity(10, 1000) > hak_rating_curiosity(10, 100));
    /* 200 * sqrt(ln(1000) / 10) = 166.2 points */
    CHECK(hak_rating_curiosity(10, 1000) > 164000 && hak_rating_curiosity(10, 1000) < 169000);
}
