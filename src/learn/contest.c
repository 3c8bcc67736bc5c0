/* SPDX-License-Identifier: MIT */
#include "learn/contest.h"

#include "base/bits.h"
#include "learn/rating.h"

/* A difference counts from a hundredth on, in millionths. */
#define MARGIN 10000
/* An outcome of one is so many times the usual distance of two sides, which is taken to be a
 * two-hundredth at least. */
#define SPREADS_OF_ONE 4
#define SPREAD_FIRST_MATCHES 2u
#define SPREAD_LEAST 5000u

#define HARM_TO_DROP 20u
#define HARM_TO_RECALL 100u
#define MATCHES_MOST 120u
#define CANARY_ROUNDS 8u
#define CANARY_ALARMS 3u
#define WATCH_MS 60000u
/* With so much evidence of harm the next look does not wait. */
#define SUSPECTED (HAK_WAGER_ONE + HAK_WAGER_ONE / 16)
/* Regret may be one part in so many of all costs. */
#define REGRET_PART 50

static void start_arm(struct arm *arm)
{
    *arm = (struct arm){.rating = HAK_RATING_START};
    hak_wager_begin(&arm->gain, HAK_WAGER_ONE);
    hak_wager_begin(&arm->harm, HAK_WAGER_ONE);
}

void hak_contest_begin(struct contest *contest, uint32_t arm_count, uint32_t contests, bool may_act)
{
    *contest = (struct contest){
        .arm_count = arm_count,
        .threshold = contests * (arm_count - 1) * 100 / HAK_CONTEST_ERRORS_PER_HUNDRED,
        .may_act = may_act,
    };
    for (uint32_t i = 0; i < arm_count; i++)
        start_arm(&contest->arms[i]);
}

bool hak_contest_wants(const struct contest *contest, const struct contest_budget *budget,
                       uint64_t now_ms)
{
    if (contest->state == CONTEST_LEARN)
        return budget->regret_ns * REGRET_PART <= (int64_t)budget->cost_ns;
    if (contest->state == CONTEST_CANARY) /* to look after what holds costs no regret */
        return true;
    bool is_suspected = hak_wager_value(&contest->arms[contest->holds].harm) >= SUSPECTED;
    return contest->holds != 0 && (is_suspected || now_ms - contest->watched_ms >= WATCH_MS);
}

/* The open value with the best rating, and a bonus for the least known. */
static uint32_t next_player(const struct contest *contest)
{
    uint32_t best = 0;
    int32_t best_worth = INT32_MIN;
    for (uint32_t i = 1; i < contest->arm_count; i++) {
        const struct arm *arm = &contest->arms[i];
        int32_t worth = arm->rating + hak_rating_curiosity(arm->matches, contest->matches);
        if (arm->state == ARM_OPEN && worth > best_worth) {
            best = i;
            best_worth = worth;
        }
    }
    return best;
}

void hak_contest_draw(struct contest *contest, uint64_t random)
{
    contest->plays = contest->state == CONTEST_LEARN ? next_player(contest) : contest->holds;
    if (contest->state == CONTEST_CANARY)
        contest->schedule = 15u & ~(1u << random % HAK_MATCH_WINDOWS);
    else
        contest->schedule = random % 2 == 0 ? 6u : 9u;
}

uint32_t hak_contest_arm(const struct contest *contest, uint32_t window)
{
    return contest->schedule >> window & 1 ? contest->plays : 0;
}

void hak_contest_stop(struct contest *contest)
{
    contest->state = CONTEST_FROZEN;
    contest->holds = 0;
}

/* One side of the match. */
struct side {
    struct trial trial;
    uint64_t per_mib;
    uint64_t time_per_mib;
    uint64_t held_kib;
};

static struct side side_of(const struct contest *contest, const struct trial *windows,
                           const struct trial_price *price, uint32_t which)
{
    struct side side = {.held_kib = 0};
    for (uint32_t i = 0; i < HAK_MATCH_WINDOWS; i++)
        if ((contest->schedule >> i & 1) == which)
            hak_trial_add(&side.trial, &windows[i]);
    const struct trial *sum = &side.trial;
    side.per_mib = hak_trial_per_mib(sum, hak_trial_cost_ns(sum, price));
    side.time_per_mib = hak_trial_per_mib(sum, hak_trial_time_ns(sum, price));
    side.held_kib = sum->ms == 0 ? 0 : sum->held_kib_ms / sum->ms;
    return side;
}

static void pay(struct contest_budget *budget, const struct side *own, const struct side *usual,
                const struct trial_price *price)
{
    uint64_t own_ns = hak_trial_cost_ns(&own->trial, price);
    uint64_t usual_ns = usual->per_mib * own->trial.volume_kib / 1024;
    budget->cost_ns += own_ns + hak_trial_cost_ns(&usual->trial, price);
    budget->regret_ns += (int64_t)own_ns - (int64_t)usual_ns;
    if (budget->regret_ns < 0)
        budget->regret_ns = 0;
}

void hak_contest_rest(struct contest_budget *budget, const struct trial *window,
                      const struct trial_price *price)
{
    budget->cost_ns += hak_trial_cost_ns(window, price);
}

/* How far apart two sides of the value's earlier matches were. */
static int64_t spread_of(const struct arm *arm)
{
    uint64_t sum = arm->spread + (uint64_t)HAK_SPREAD_FIRST * SPREAD_FIRST_MATCHES;
    return (int64_t)hak_most(sum / (arm->matches + SPREAD_FIRST_MATCHES), SPREAD_LEAST);
}

static int32_t outcome_of(int64_t saving, int64_t spread)
{
    int64_t outcome = (saving - MARGIN) * HAK_OUTCOME_ONE / (SPREADS_OF_ONE * spread);
    if (outcome > HAK_OUTCOME_ONE)
        return HAK_OUTCOME_ONE;
    return outcome < -HAK_OUTCOME_ONE ? -HAK_OUTCOME_ONE : (int32_t)outcome;
}

static void rate(struct contest *contest, struct arm *arm, int32_t saving)
{
    int32_t score = saving > MARGIN ? 1000 : saving < -MARGIN ? 0 : 500;
    int32_t gain = hak_rating_gain(arm->rating, contest->arms[0].rating, score);
    arm->rating += gain;
    contest->arms[0].rating -= gain;
    arm->won += score == 1000;
    arm->lost += score == 0;
}

/* Adds a match to the record of its value. */
static void note(struct contest *contest, const struct side *own, const struct side *usual)
{
    struct arm *arm = &contest->arms[contest->plays];
    int32_t saving = contest->saving;
    int64_t spread = spread_of(arm);
    uint64_t distance = (uint64_t)(saving < 0 ? -(int64_t)saving : saving);
    hak_wager_note(&arm->gain, outcome_of(saving, spread));
    hak_wager_note(&arm->harm, outcome_of(-saving, spread));
    rate(contest, arm, saving);
    arm->spread += hak_least(distance, (uint64_t)(SPREADS_OF_ONE * spread));
    arm->matches++;
    contest->matches++;
    hak_trial_add(&arm->own, &own->trial);
    hak_trial_add(&arm->usual, &usual->trial);
}

static bool has_open(const struct contest *contest)
{
    return next_player(contest) != 0;
}

static enum contest_event drop(struct contest *contest, enum arm_state why)
{
    contest->arms[contest->plays].state = why;
    contest->holds = 0;
    contest->state = has_open(contest) ? CONTEST_LEARN : CONTEST_FROZEN;
    return why == ARM_RECALLED ? CONTEST_RECALLED : CONTEST_DROPPED;
}

static enum contest_event judge(struct contest *contest)
{
    struct arm *arm = &contest->arms[contest->plays];
    if (hak_wager_value(&arm->gain) >= contest->threshold * HAK_WAGER_ONE) {
        arm->state = ARM_WON;
        contest->state = contest->may_act ? CONTEST_CANARY : CONTEST_FROZEN;
        contest->holds = contest->may_act ? contest->plays : 0;
        return CONTEST_TAKEN;
    }
    if (hak_wager_value(&arm->harm) >= HARM_TO_DROP * HAK_WAGER_ONE)
        return drop(contest, ARM_HARMED);
    return arm->matches >= MATCHES_MOST ? drop(contest, ARM_SPENT) : CONTEST_PLAYED;
}

static enum contest_event judge_canary(struct contest *contest, const struct side *own,
                                       const struct side *usual, uint64_t now_ms)
{
    contest->rounds++;
    contest->alarms += own->held_kib > usual->held_kib + usual->held_kib / 10 ||
                       own->time_per_mib > usual->time_per_mib + usual->time_per_mib / 4;
    if (contest->alarms >= CANARY_ALARMS)
        return drop(contest, ARM_RECALLED);
    if (contest->rounds < CANARY_ROUNDS)
        return CONTEST_PLAYED;
    contest->state = CONTEST_FROZEN;
    contest->watched_ms = now_ms;
    hak_wager_begin(&contest->arms[contest->holds].harm, HAK_WAGER_ONE);
    return CONTEST_CONFIRMED;
}

/* The past of a program must not outweigh a change: while nothing speaks against the value in
 * force, the count restarts. After one wrong value no other is tried. */
static enum contest_event judge_frozen(struct contest *contest, uint64_t now_ms)
{
    struct arm *arm = &contest->arms[contest->holds];
    contest->watched_ms = now_ms;
    if (hak_wager_value(&arm->harm) < HAK_WAGER_ONE)
        hak_wager_begin(&arm->harm, HAK_WAGER_ONE);
    if (hak_wager_value(&arm->harm) < HARM_TO_RECALL * HAK_WAGER_ONE)
        return CONTEST_PLAYED;
    arm->state = ARM_RECALLED;
    hak_contest_stop(contest);
    return CONTEST_RECALLED;
}

enum contest_event hak_contest_finish(struct contest *contest, struct contest_budget *budget,
                                      const struct trial windows[HAK_MATCH_WINDOWS],
                                      const struct trial_price *price, bool is_void,
                                      uint64_t now_ms)
{
    struct side own = side_of(contest, windows, price, 1);
    struct side usual = side_of(contest, windows, price, 0);
    if (is_void || own.trial.volume_kib == 0 || usual.trial.volume_kib == 0) {
        contest->voids++;
        contest->watched_ms = contest->state == CONTEST_FROZEN ? now_ms : contest->watched_ms;
        return CONTEST_VOID;
    }
    pay(budget, &own, &usual, price);
    contest->saving = hak_trial_saving(usual.per_mib, own.per_mib);
    if (contest->state == CONTEST_CANARY)
        return judge_canary(contest, &own, &usual, now_ms);
    note(contest, &own, &usual);
    return contest->state == CONTEST_FROZEN ? judge_frozen(contest, now_ms) : judge(contest);
}
