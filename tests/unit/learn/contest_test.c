/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/contest_test.c - matches of replayed programs: what has no effect is not taken,
 * what has one is found, and what turns bad is taken back. Costs and coins are the test's own. */
#include "learn/contest.h"

#include "check.h"

#define SEEDS 1000u
#define ARMS 4u

static const struct trial_price price = {.fault_ns = 1000, .big_fault_ms = 1400};

/* A program: what its windows cost, in thousandths of a usual one. */
struct program {
    uint64_t random;
    uint64_t clock_ms;
    uint32_t noise;  /* thousandths: about the standard deviation */
    uint32_t spikes; /* windows of a thousand that cost five times as much */
    int64_t (*effect)(const struct program *, uint32_t arm); /* in thousandths of the cost */
    int64_t (*drift)(const struct program *);                /* of the program itself */
    struct contest contest;
    struct contest_budget budget;
    uint32_t window;       /* since the start */
    uint64_t spent, usual; /* what was paid, and what value 0 would have cost */
};

static uint64_t draw(struct program *program)
{
    program->random = program->random * 6364136223846793005u + 1442695040888963407u;
    uint64_t word = program->random ^ program->random >> 33;
    return word * 0xff51afd7ed558ccdu >> 17;
}

/* About normal, mean 0, standard deviation 1000. */
static int64_t draw_normal(struct program *program)
{
    int64_t sum = -6000;
    for (int i = 0; i < 12; i++)
        sum += (int64_t)(draw(program) % 1001);
    return sum;
}

static struct trial play_window(struct program *program, uint32_t arm)
{
    int64_t cost = 1000 + (program->drift == NULL ? 0 : program->drift(program));
    cost += cost * draw_normal(program) * program->noise / 1000000;
    cost = cost < 100 ? 100 : cost;
    if (draw(program) % 1000 < program->spikes)
        cost *= 5;
    int64_t effect = program->effect == NULL ? 0 : program->effect(program, arm);
    program->usual += (uint64_t)cost;
    cost += cost * effect / 1000;
    program->spent += (uint64_t)cost;
    program->window++;
    program->clock_ms += 300;
    return (struct trial){
        .volume_kib = 65536, .slow_ns = (uint64_t)cost * 4000, .held_kib_ms = 1000000, .ms = 250};
}

static void begin(struct program *program, uint64_t seed)
{
    program->random = seed * 0x9e3779b97f4a7c15u + 1;
    hak_contest_begin(&program->contest, ARMS, 1, true);
}

static enum contest_event play_match_by(struct program *program, uint64_t coin)
{
    struct trial windows[HAK_MATCH_WINDOWS];
    hak_contest_draw(&program->contest, coin);
    for (uint32_t i = 0; i < HAK_MATCH_WINDOWS; i++)
        windows[i] = play_window(program, hak_contest_arm(&program->contest, i));
    return hak_contest_finish(&program->contest, &program->budget, windows, &price, false,
                              program->clock_ms);
}

static enum contest_event play_match(struct program *program)
{
    return play_match_by(program, draw(program));
}

/* A match, or, where none is wanted, a window of what holds. */
static void go_on(struct program *program)
{
    if (hak_contest_wants(&program->contest, &program->budget, program->clock_ms)) {
        play_match(program);
        return;
    }
    struct trial window = play_window(program, program->contest.holds);
    hak_contest_rest(&program->budget, &window, &price);
}

/* How many of SEEDS such programs take a value within so many matches each. */
static uint32_t count_taken(const struct program *like, uint32_t matches, bool has_coin)
{
    uint32_t taken = 0;
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        struct program program = *like;
        begin(&program, seed);
        for (uint32_t i = 0; i < matches && program.contest.state == CONTEST_LEARN; i++)
            play_match_by(&program, has_coin ? draw(&program) : 0);
        taken += program.contest.state == CONTEST_CANARY;
    }
    return taken;
}

/* Every other pair of windows costs more: in step with the order of a match. */
static int64_t in_step(const struct program *program)
{
    uint32_t at = program->window % 4;
    return at == 1 || at == 2 ? -200 : 0;
}

static int64_t wandering(const struct program *program)
{
    uint32_t at = program->window % 200;
    return at < 100 ? (int64_t)at * 5 : (int64_t)(200 - at) * 5;
}

static int64_t third_saves_a_twentieth(const struct program *program, uint32_t arm)
{
    (void)program;
    return arm == 2 ? -60 : arm == 3 ? 40 : 0;
}

TEST(values_without_an_effect_are_taken_in_five_of_a_hundred_programs_at_most)
{
    static const struct program programs[] = {
        {.noise = 20},
        {.noise = 100},
        {.noise = 300, .spikes = 50},
        {.noise = 20, .drift = wandering},
        {.noise = 5, .drift = in_step},
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        CHECK(count_taken(&programs[i], 400, true) <= SEEDS * HAK_CONTEST_ERRORS_PER_HUNDRED / 100);
}

/* The test above would notice: a program in step with the order of matches wins them all. */
TEST(without_the_coin_a_value_without_an_effect_is_taken)
{
    struct program program = {.noise = 5, .drift = in_step};
    CHECK(count_taken(&program, 400, false) > SEEDS * 9 / 10);
}

TEST(a_saving_of_a_twentieth_is_found_within_200_matches)
{
    struct program quiet = {.noise = 20, .effect = third_saves_a_twentieth};
    struct program noisy = {.noise = 70, .effect = third_saves_a_twentieth};
    CHECK(count_taken(&quiet, 100, true) >= SEEDS * 95 / 100);
    CHECK(count_taken(&noisy, 200, true) >= SEEDS * 80 / 100);
}

TEST(the_value_that_saves_is_found)
{
    struct program program = {.noise = 50, .effect = third_saves_a_twentieth};
    begin(&program, 7);
    for (int i = 0; i < 200 && program.contest.state == CONTEST_LEARN; i++)
        play_match(&program);
    CHECK_EQ(program.contest.state, CONTEST_CANARY);
    CHECK_EQ(program.contest.holds, 2);
    CHECK_EQ(program.contest.arms[2].state, ARM_WON);
    CHECK(program.contest.arms[2].rating > program.contest.arms[0].rating);
    CHECK(program.contest.arms[2].rating > program.contest.arms[3].rating);
    for (int i = 0; i < 8; i++)
        play_match(&program);
    CHECK_EQ(program.contest.state, CONTEST_FROZEN);
    CHECK_EQ(program.contest.holds, 2);
}

static int64_t others_cost_half_more(const struct program *program, uint32_t arm)
{
    (void)program;
    return arm != 0 ? 500 : 0;
}

TEST(trying_bad_values_costs_a_fiftieth_at_most)
{
    struct program program = {.noise = 30, .effect = others_cost_half_more};
    begin(&program, 3);
    for (int i = 0; i < 3000; i++)
        go_on(&program);
    CHECK(program.contest.arms[1].state == ARM_HARMED);
    CHECK(program.contest.state == CONTEST_FROZEN);
    CHECK_EQ(program.contest.holds, 0);
    CHECK(program.spent <= program.usual + program.usual / 50 + 2000);
}

/* Good while it is watched in matches, bad from the moment that it holds. */
static int64_t turns_bad(const struct program *program, uint32_t arm)
{
    if (arm != 2)
        return 0;
    return program->contest.state == CONTEST_LEARN ? -100 : 400;
}

static int64_t turns_bad_late(const struct program *program, uint32_t arm)
{
    if (arm != 2)
        return 0;
    return program->contest.state == CONTEST_FROZEN && program->clock_ms > 600000 ? 150 : -100;
}

TEST(a_value_that_turns_bad_is_taken_back_by_the_canary)
{
    struct program program = {.noise = 30, .effect = turns_bad};
    begin(&program, 11);
    for (int i = 0; i < 200 && program.contest.state == CONTEST_LEARN; i++)
        play_match(&program);
    CHECK_EQ(program.contest.state, CONTEST_CANARY);
    for (int i = 0; i < 8 && program.contest.state == CONTEST_CANARY; i++)
        play_match(&program);
    CHECK_EQ(program.contest.arms[2].state, ARM_RECALLED);
    CHECK_EQ(program.contest.holds, 0);
}

TEST(a_value_that_turns_bad_later_is_taken_back_within_two_minutes)
{
    struct program program = {.noise = 30, .effect = turns_bad_late};
    begin(&program, 12);
    while (program.clock_ms < 600000)
        go_on(&program);
    CHECK_EQ(program.contest.state, CONTEST_FROZEN);
    CHECK_EQ(program.contest.holds, 2);
    while (program.clock_ms < 720000)
        go_on(&program);
    CHECK_EQ(program.contest.holds, 0);
    CHECK_EQ(program.contest.arms[2].state, ARM_RECALLED);
}

/* Every seven windows another value is the good one, and the last one is bad. */
static int64_t flips(const struct program *program, uint32_t arm)
{
    uint32_t good = program->window / 7 % ARMS;
    return arm == good ? -100 : arm == (good + ARMS - 1) % ARMS ? 100 : 0;
}

TEST(flips_cost_a_fiftieth_at_most)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct program program = {.noise = 30, .effect = flips};
        begin(&program, seed);
        uint64_t best = 0;
        for (int i = 0; i < 2000; i++)
            go_on(&program);
        best = program.usual; /* each value alone costs as much in the long run */
        CHECK(program.spent <= best + best / 50);
    }
}

TEST(a_match_of_a_program_that_changed_does_not_count)
{
    struct program program = {.noise = 30};
    struct trial windows[HAK_MATCH_WINDOWS];
    begin(&program, 1);
    hak_contest_draw(&program.contest, 1);
    for (uint32_t i = 0; i < HAK_MATCH_WINDOWS; i++)
        windows[i] = play_window(&program, 0);
    CHECK_EQ(hak_contest_finish(&program.contest, &program.budget, windows, &price, true, 1),
             CONTEST_VOID);
    windows[1].volume_kib = windows[2].volume_kib = 0;
    CHECK_EQ(hak_contest_finish(&program.contest, &program.budget, windows, &price, false, 1),
             CONTEST_VOID);
    CHECK_EQ(program.contest.voids, 2);
    CHECK_EQ(program.contest.matches, 0);
    CHECK_EQ(program.budget.cost_ns, 0);
}

TEST(where_nothing_may_act_a_winner_is_noted_only)
{
    struct program program = {.noise = 20, .effect = third_saves_a_twentieth};
    begin(&program, 5);
    program.contest.may_act = false;
    for (int i = 0; i < 200 && program.contest.state == CONTEST_LEARN; i++)
        play_match(&program);
    CHECK_EQ(program.contest.state, CONTEST_FROZEN);
    CHECK_EQ(program.contest.arms[2].state, ARM_WON);
    CHECK_EQ(program.contest.holds, 0);
    CHECK(!hak_contest_wants(&program.contest, &program.budget, UINT64_MAX));
}

TEST(a_window_has_the_other_value_in_half_of_a_match)
{
    struct program program = {.noise = 0};
    begin(&program, 1);
    for (uint64_t coin = 0; coin < 8; coin++) {
        uint32_t tried = 0;
        hak_contest_draw(&program.contest, coin);
        for (uint32_t i = 0; i < HAK_MATCH_WINDOWS; i++)
            tried += hak_contest_arm(&program.contest, i) != 0;
        CHECK_EQ(tried, 2);
        CHECK_EQ(hak_contest_arm(&program.contest, 0), hak_contest_arm(&program.contest, 3));
    }
}

TEST(costs_are_time_and_memory_weighed_by_price)
{
    struct trial trial = {.volume_kib = 2048, .slow_ns = 100, .purge_ns = 10, .faults = 2};
    CHECK_EQ(hak_trial_time_ns(&trial, &price), 2110);
    CHECK_EQ(hak_trial_cost_ns(&trial, &price), 2110);
    trial.held_kib_ms = UINT64_C(2048) * 1400; /* 2 MiB for 1.4 s: 681 us */
    CHECK(hak_trial_cost_ns(&trial, &price) > 2110 + 670000);
    CHECK(hak_trial_cost_ns(&trial, &price) < 2110 + 690000);
    CHECK_EQ(hak_trial_per_mib(&trial, 3000), 1500);
    CHECK_EQ(hak_trial_saving(100, 100), 0);
    CHECK_EQ(hak_trial_saving(105, 95), 100000);
    CHECK_EQ(hak_trial_saving(UINT64_MAX, 0), 2000000);
}

TEST(mixtures_are_distinguished_by_their_shares)
{
    struct mixture a = {.amounts = {100, 100}}, b = {.amounts = {1000, 1000}}, c = {.amounts = {0}};
    CHECK_EQ(hak_mixture_distance(&a, &b), 0);
    b.amounts[1] = 3000;
    CHECK_EQ(hak_mixture_distance(&a, &b), 500);
    c.amounts[7] = 5;
    CHECK_EQ(hak_mixture_distance(&a, &c), 2000);
    c.amounts[7] = 0;
    CHECK_EQ(hak_mixture_distance(&a, &c), 2000);
    CHECK_EQ(hak_mixture_distance(&c, &c), 0);
}
