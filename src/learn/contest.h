/* SPDX-License-Identifier: MIT */
/* learn/contest.h - matches between the usual value of a number and a few others.
 *
 * Owns        struct contest: one row of the policy, its values, the evidence for each, and the
 *             value in force. Value 0 is the usual one.
 * Invariants  a match is four windows in a row, two with each value, in a random order: 0110 or
 *             1001. If a value has no effect, the coin only exchanges the costs of the two sides,
 *             so the mean of their difference is 0 whatever else happens. A value is taken only if
 *             it is cheaper by more than a hundredth, at an e-value of `threshold`: without such an
 *             effect that happens with a probability of 1/threshold at most, in all the contest
 *             (learn/wager.h). Ratings only select the next value to play. LEARN: matches until a
 *             value is taken or none is left. CANARY: the value is in force in three windows of
 *             four, eight times; it is reverted if three of these have more memory by a tenth or
 *             more time by a quarter than the fourth. FROZEN: nothing is tried; if a value was
 *             taken, a match a minute checks it (without pauses while they go against it), and it
 *             is reverted when the evidence that it costs more than the usual one reaches 100 to 1,
 *             counted from when there was none. A value that was dropped is not tried again.
 * Threads     pure functions; time and coins are the caller's.
 * Tests       tests/unit/learn/contest_test.c
 */
#ifndef HAK_LEARN_CONTEST_H
#define HAK_LEARN_CONTEST_H

#include "learn/trial.h"
#include "learn/wager.h"

#define HAK_ARMS_MOST 4u
#define HAK_MATCH_WINDOWS 4u
/* The chance that a program's contests, all together, ever take a value that is no better. */
#define HAK_CONTEST_ERRORS_PER_HUNDRED 5u

/* The assumed difference of the sides of a match before it is known, in millionths. */
#define HAK_SPREAD_FIRST 50000u

enum contest_state { CONTEST_LEARN, CONTEST_CANARY, CONTEST_FROZEN };

enum arm_state {
    ARM_OPEN,
    ARM_WON,     /* taken, or would be where nothing may be */
    ARM_HARMED,  /* it is worse by more than a hundredth: 20 to 1 */
    ARM_SPENT,   /* as many matches as it may have */
    ARM_RECALLED /* it had won, and was reverted */
};

/* A value, and how its matches went; of value 0 the rating alone. */
struct arm {
    uint32_t state;
    int32_t rating;
    uint32_t matches;
    uint32_t won, lost;      /* by more than a hundredth; the rest were drawn */
    uint64_t spread;         /* sum of how far apart the sides were, in millionths */
    struct wager gain;       /* against "no better by a hundredth" */
    struct wager harm;       /* against "no worse by a hundredth" */
    struct trial own, usual; /* what the sides cost in all matches */
};

struct contest {
    uint32_t state;
    uint32_t arm_count;
    uint32_t holds;    /* the value that holds outside of matches */
    uint32_t plays;    /* the one that the match is about */
    uint32_t schedule; /* bit i: it holds in window i, else value 0 */
    uint32_t matches;  /* of all values */
    uint32_t voids;    /* matches that did not count */
    uint32_t rounds;   /* of the canary */
    uint32_t alarms;   /* rounds with too much memory or time */
    uint32_t threshold;
    uint32_t may_act; /* 0: what wins is only recorded */
    int32_t saving;   /* of the last match, in millionths (hak_trial_saving) */
    uint32_t _reserved;
    uint64_t watched_ms; /* frozen: when a match last checked the value in force */
    struct arm arms[HAK_ARMS_MOST];
};

/* What matches may cost: less than a fiftieth of all that was measured. */
struct contest_budget {
    uint64_t cost_ns;  /* of all windows so far */
    int64_t regret_ns; /* more than what value 0 would have cost; never below 0 */
};

enum contest_event {
    CONTEST_PLAYED, /* nothing follows from the match yet */
    CONTEST_VOID,
    CONTEST_DROPPED,
    CONTEST_TAKEN,    /* canary begins, or, where nothing may act, all is over */
    CONTEST_RECALLED, /* value 0 holds again */
    CONTEST_CONFIRMED /* the canary is over, the value holds */
};

/* Starts with nothing known; `contests` are played in the process. */
void hak_contest_begin(struct contest *contest, uint32_t arm_count, uint32_t contests,
                       bool may_act);

/* Whether there is a match to play, and the budget allows it. */
bool hak_contest_wants(const struct contest *contest, const struct contest_budget *budget,
                       uint64_t now_ms);

/* Begins a match: chooses what plays and in which order. */
void hak_contest_draw(struct contest *contest, uint64_t random);

/* The value that holds in a window of the match. */
uint32_t hak_contest_arm(const struct contest *contest, uint32_t window);

/* The four windows were played, each measured; `is_void`: the program changed meanwhile. */
enum contest_event hak_contest_finish(struct contest *contest, struct contest_budget *budget,
                                      const struct trial windows[HAK_MATCH_WINDOWS],
                                      const struct trial_price *price, bool is_void,
                                      uint64_t now_ms);

/* A window without a match was measured: budget for the next one. */
void hak_contest_rest(struct contest_budget *budget, const struct trial *window,
                      const struct trial_price *price);

/* Value 0 is in force, and nothing is tried any more. */
void hak_contest_stop(struct contest *contest);

#endif
