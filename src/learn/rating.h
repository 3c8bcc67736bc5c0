/* SPDX-License-Identifier: MIT */
/* learn/rating.h - Elo ratings: the table that people read, and which value plays next.
 *
 * Owns        the arithmetic. Ratings are in thousandths of a point.
 * Invariants  one player gains as many points as the other loses. A rating decides only the order
 *             of the matches; evidence decides which value is kept (learn/contest.h).
 * Threads     pure functions.
 * Tests       tests/unit/learn/rating_test.c
 */
#ifndef HAK_LEARN_RATING_H
#define HAK_LEARN_RATING_H

#include "base/compiler.h"

#define HAK_RATING_START 1500000

/* Share of the points, in thousandths, that the better one of two so far apart is expected to win;
 * of a negative distance, the worse one. */
int32_t hak_rating_expected(int32_t distance);

/* What a player gains by a score of 0, 500 or 1000 thousandths; the other one loses it. */
int32_t hak_rating_gain(int32_t own, int32_t other, int32_t score);

/* The exploration bonus of a player with `matches` of `all_matches` matches: rating plus bonus
 * selects the next one to play. */
int32_t hak_rating_curiosity(uint32_t matches, uint32_t all_matches);

#endif
