/* SPDX-License-Identifier: MIT */
/* learn/wager.h - how strong the evidence of a series of outcomes is against "no better than
 * before".
 *
 * Owns        struct wager: the capital of four gamblers who started with one coin and bet a fixed
 *             share of what they have on each next outcome.
 * Invariants  while an outcome's mean is 0 or less, whatever came before, the expected capital
 *             never grows; so it ever reaches N times its start with a probability of 1/N at most,
 *             however often the capital is looked at and whenever the series stops (Ville's
 *             inequality). That is the e-value. Integers, rounded down: rounding never favours the
 *             gamblers. No floating point: malloc must neither raise exceptions that a program
 *             traps nor change its flags.
 * Threads     pure functions.
 * Tests       tests/unit/learn/wager_test.c
 */
#ifndef HAK_LEARN_WAGER_H
#define HAK_LEARN_WAGER_H

#include "base/compiler.h"

/* One coin. More than 2^20 of them are not counted. */
#define HAK_WAGER_ONE (UINT64_C(1) << 20)
#define HAK_WAGER_MOST (HAK_WAGER_ONE << 20)
/* The best outcome; the worst is its negative. */
#define HAK_OUTCOME_ONE 65536

#define HAK_WAGER_GAMBLERS 4u
struct wager {
    uint64_t capitals[HAK_WAGER_GAMBLERS];
};

/* Each gambler starts with the capital: HAK_WAGER_ONE, or what an earlier wager ended with. */
void hak_wager_begin(struct wager *wager, uint64_t capital);

/* The next outcome, from -HAK_OUTCOME_ONE to HAK_OUTCOME_ONE. */
void hak_wager_note(struct wager *wager, int32_t outcome);

/* What the gamblers have on average: the e-value, in units of 1 / HAK_WAGER_ONE. */
uint64_t hak_wager_value(const struct wager *wager);

#endif
