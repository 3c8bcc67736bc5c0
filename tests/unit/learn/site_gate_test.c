/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/site_gate_test.c - a fair coin opens no gate more often than was promised; the
 * random numbers are the test's own. */
#include "learn/site_gate.h"

#include "check.h"

static uint64_t state = 1;

static uint32_t draw(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33);
}

/* Bets until the gate opens, at most `most`; returns how many. */
static uint32_t bets_to_open(struct site_gate *gate, uint32_t percent, uint32_t most)
{
    uint32_t bets = 0;
    while (bets < most && !hak_gate_is_open(gate)) {
        hak_gate_bet(gate, draw() % 100 < percent ? 1 : -1);
        bets++;
    }
    return bets;
}

TEST(a_fair_coin_opens_the_first_gate_in_fewer_than_one_in_forty_runs)
{
    uint32_t opened = 0;
    for (uint32_t run = 0; run < 4000; run++) {
        struct site_gate gate;
        hak_gate_begin(&gate, 1);
        opened += bets_to_open(&gate, 50, 1000) < 1000;
    }
    CHECK(opened <= 4000 / 40);
    CHECK(opened > 0); /* the bound is no wall: it is a chance */
}

TEST(a_site_that_always_survives_opens_its_gate_in_twenty_pairs)
{
    struct site_gate gate;
    hak_gate_begin(&gate, 16);
    CHECK(bets_to_open(&gate, 100, 1000) <= 20);
}

TEST(later_gates_and_later_tries_need_more)
{
    struct site_gate first, later;
    hak_gate_begin(&first, 1);
    hak_gate_begin(&later, 100);
    CHECK(hak_gate_bound(&later) > 1000 * hak_gate_bound(&first));
    double bound = hak_gate_bound(&first);
    while (first.tries == 1)
        hak_gate_bet(&first, -1);
    CHECK_EQ(first.tries, 2);
    CHECK(hak_gate_wealth(&first) == 1);
    CHECK(hak_gate_bound(&first) > 2 * bound);
}

TEST(a_site_that_changes_opens_its_gate_although_it_lost_for_long)
{
    struct site_gate gate;
    hak_gate_begin(&gate, 4);
    CHECK_EQ(bets_to_open(&gate, 0, 1000), 1000);
    CHECK(bets_to_open(&gate, 100, 1000) <= 60);
}

TEST(wealth_stays_finite)
{
    struct site_gate gate;
    hak_gate_begin(&gate, 1);
    for (int i = 0; i < 10000; i++)
        hak_gate_bet(&gate, 1);
    CHECK(hak_gate_wealth(&gate) < 1e31);
}
