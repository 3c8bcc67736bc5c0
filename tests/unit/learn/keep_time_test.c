/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/keep_time_test.c - how long memory is kept follows from how soon it came back;
 * the clock and the numbers are the test's own. */
#include "learn/keep_time.h"

#include "check.h"
#include "policy/policy_table.h"

#define DECAY_MS 125u
#define EPISODES 32u
#define FAULT_MS 1400u

static const uint32_t sixteenths[HAK_KEEP_CHOICES] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
#define USUAL 4u

static struct keep_log past;
static uint64_t now = 1000000;

/* What a policy that keeps for `keep_ms` pays for an idle time. */
static uint64_t price(uint64_t keep_ms, uint64_t idle_ms)
{
    return idle_ms <= keep_ms ? idle_ms : keep_ms + FAULT_MS;
}

/* Memory is free for `idle_ms`, then wanted again; what that costs as it is kept now. */
static uint64_t come_back(uint32_t count, uint64_t idle_ms)
{
    uint64_t freed_ms = now, keep_ms = hak_keep_ms(&past);
    struct keep_ghost ghost;
    now += idle_ms;
    if (idle_ms <= keep_ms) {
        hak_keep_came_back(&past, count, idle_ms, EPISODES);
    } else {
        hak_keep_left(&past, &(struct keep_ghost){.freed_ms = freed_ms, .count = count},
                      freed_ms + keep_ms, EPISODES);
        hak_keep_missed(&past, count, now, EPISODES, &ghost);
    }
    return count * price(keep_ms, idle_ms);
}

TEST(an_empty_log_keeps_for_decay)
{
    CHECK_EQ(hak_keep_ms(&past), DECAY_MS);
    for (uint32_t i = 1; i < EPISODES; i++)
        come_back(10, 300);
    CHECK_EQ(hak_keep_ms(&past), DECAY_MS);
    come_back(10, 300);
    CHECK_EQ(hak_keep_ms(&past), 4 * DECAY_MS);
}

TEST(memory_that_never_comes_back_is_kept_for_a_sixteenth)
{
    for (uint32_t i = 0; i < 300; i++, now += 2000)
        hak_keep_left(&past, &(struct keep_ghost){.freed_ms = now, .count = 10}, now + DECAY_MS,
                      EPISODES);
    CHECK_EQ(hak_keep_ms(&past), DECAY_MS / 16);
}

TEST(evicted_memory_is_distinguished_from_aged_memory)
{
    struct keep_ghost what;
    CHECK(!hak_keep_missed(&past, 1, now, EPISODES, &what));
    hak_keep_left(&past, &(struct keep_ghost){now, 4, true}, now + 1, EPISODES);
    CHECK(!hak_keep_missed(&past, 5, now + 2, EPISODES, &what)); /* not as long */
    CHECK(hak_keep_missed(&past, 3, now + 2, EPISODES, &what));
    CHECK(what.is_evicted && what.count == 4 && what.freed_ms == now);
    CHECK(!hak_keep_missed(&past, 2, now + 3, EPISODES, &what)); /* one granule is left of it */
    CHECK(hak_keep_missed(&past, 1, now + 3, EPISODES, &what));
}

TEST(memory_returned_long_ago_counts_as_no_miss)
{
    struct keep_ghost what;
    hak_keep_left(&past, &(struct keep_ghost){.freed_ms = now, .count = 4}, now + 1, EPISODES);
    CHECK(!hak_keep_missed(&past, 4, now + 16 * DECAY_MS + 1, EPISODES, &what));
}

/* Idle times about `middle_ms`, within a factor of two both ways, mixed with some that are much
 * longer. */
static uint64_t draw_idle(unsigned *state, uint64_t middle_ms, unsigned long_percent)
{
    *state = *state * 1664525u + 1013904223u;
    uint64_t random = *state >> 8;
    if (random % 100 < long_percent)
        return 20 * middle_ms;
    return middle_ms / 2 + random / 100 % (middle_ms + middle_ms / 2 + 1);
}

/* Costs of the log's choices beside the best fixed keep time that it may choose, known beforehand,
 * and beside the static one. */
static void check_against_oracle(uint64_t middle_ms, unsigned long_percent)
{
    uint64_t fixed[HAK_KEEP_CHOICES] = {0}, learned = 0, best = UINT64_MAX;
    unsigned state = (unsigned)middle_ms;
    past = (struct keep_log){0};
    for (uint32_t i = 0; i < 2000; i++) {
        uint64_t idle_ms = draw_idle(&state, middle_ms, long_percent);
        for (uint32_t at = 0; at < HAK_KEEP_CHOICES; at++)
            fixed[at] += price(DECAY_MS * sixteenths[at] / 16, idle_ms);
        learned += come_back(1, idle_ms);
    }
    for (uint32_t at = 0; at < HAK_KEEP_CHOICES; at++)
        best = fixed[at] < best ? fixed[at] : best;
    CHECK(learned <= best + best * 15 / 100);
    CHECK(learned <= fixed[USUAL] + fixed[USUAL] / 50); /* nor worse than `decay` */
}

TEST(the_learned_time_costs_little_more_than_the_best_fixed_time)
{
    for (uint64_t middle_ms = 2; middle_ms < 2000; middle_ms *= 2)
        for (unsigned long_percent = 0; long_percent <= 50; long_percent += 10)
            check_against_oracle(middle_ms, long_percent);
}

TEST(a_learned_time_is_unlearned)
{
    for (uint32_t i = 0; i < 300; i++, now += 2000)
        hak_keep_left(&past, &(struct keep_ghost){.freed_ms = now, .count = 10}, now + DECAY_MS,
                      EPISODES);
    CHECK(hak_keep_ms(&past) < DECAY_MS);
    for (uint32_t i = 0; i < 100; i++)
        come_back(10, 100);
    CHECK(hak_keep_ms(&past) >= 100);
}

TEST(a_log_can_start_from_another_log)
{
    static struct keep_log next;
    struct keep_evidence seen;
    for (uint32_t i = 0; i < EPISODES; i++)
        come_back(10, 300);
    hak_keep_read(&past, &seen);
    CHECK_EQ(hak_keep_evidence_ms(&seen), 4 * DECAY_MS);
    CHECK_EQ(hak_keep_ms(&next), DECAY_MS);
    CHECK(hak_keep_begin(&next, &seen));
    CHECK_EQ(hak_keep_ms(&next), 4 * DECAY_MS);
    for (uint32_t i = 0; i < EPISODES; i++)
        hak_keep_came_back(&next, 10, 1, EPISODES);
    CHECK_EQ(hak_keep_ms(&next), 4 * DECAY_MS); /* no shorter one would have been cheaper */
}

TEST(evidence_of_other_settings_and_none_at_all_begin_nothing)
{
    static struct keep_log next;
    struct keep_evidence seen;
    for (uint32_t i = 0; i < EPISODES; i++)
        come_back(10, 300);
    hak_keep_read(&past, &seen);
    seen.decay_ms++;
    CHECK(!hak_keep_begin(&next, &seen));
    seen.decay_ms--;
    seen.fault_ms++;
    CHECK(!hak_keep_begin(&next, &seen));
    seen.fault_ms--;
    seen.choice = HAK_KEEP_CHOICES + 1;
    CHECK(!hak_keep_begin(&next, &seen));
    hak_keep_read(&next, &seen);
    CHECK(!hak_keep_begin(&past, &seen));
    CHECK_EQ(hak_keep_ms(&next), DECAY_MS);
    CHECK_EQ(hak_keep_ms(&past), 4 * DECAY_MS);
}

/* What loads have cost so far: as it was kept, and with each fixed keep time. */
struct costs {
    uint64_t learned;
    uint64_t fixed[HAK_KEEP_CHOICES];
};

static void pay(struct costs *costs, uint64_t idle_ms)
{
    costs->learned += come_back(1, idle_ms);
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
        costs->fixed[i] += price(DECAY_MS * sixteenths[i] / 16, idle_ms);
}

static uint64_t cheapest(const struct costs *costs)
{
    uint64_t best = UINT64_MAX;
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
        best = costs->fixed[i] < best ? costs->fixed[i] : best;
    return best;
}

/* The load flips between two idle times, each for `period` cases; the first ones, before anything
 * was learned, do not count. */
static void check_flips(uint64_t one_ms, uint64_t other_ms, uint32_t period)
{
    struct costs costs = {0};
    uint32_t first = 2 * period > EPISODES ? 2 * period : EPISODES;
    past = (struct keep_log){0};
    for (uint32_t i = 0; i < first + 4000; i++) {
        if (i == first)
            costs = (struct costs){0};
        pay(&costs, i / period % 2 == 0 ? one_ms : other_ms);
    }
    CHECK(costs.learned * 50 <= cheapest(&costs) * 51);
    CHECK(costs.learned * 50 <= costs.fixed[USUAL] * 51);
}

TEST(a_load_that_flips_costs_a_fiftieth_more_than_the_best_fixed_time)
{
    static const uint64_t idles_ms[] = {4, 30, 90, 300, 900, 1500, 3000};
    for (uint32_t i = 0; i < 7; i++)
        for (uint32_t j = i + 1; j < 7; j++)
            for (uint32_t period = 1; period < 300; period += 1 + period / 3)
                check_flips(idles_ms[i], idles_ms[j], period);
}

/* Pauses of bench/workloads/bursty_buffers.c. */
static uint64_t draw_pause(uint32_t mode, unsigned *state)
{
    static const uint64_t pauses_ms[] = {20, 300, 30, 900, 3000};
    *state = *state * 1664525u + 1013904223u;
    return mode == 2 && (*state >> 16) % 5 == 0 ? 900 : pauses_ms[mode];
}

#define MODES 5u
TEST(no_fixed_time_suits_all_pauses_but_the_learned_one_does)
{
    uint64_t worst[HAK_KEEP_CHOICES] = {0};
    for (uint32_t mode = 0; mode < MODES; mode++) {
        struct costs costs = {0};
        unsigned state = 42;
        past = (struct keep_log){0};
        for (uint32_t i = 0; i < EPISODES; i++)
            pay(&costs, draw_pause(mode, &state));
        costs = (struct costs){0};
        for (uint32_t i = 0; i < 400; i++)
            pay(&costs, draw_pause(mode, &state));
        CHECK(costs.learned * 100 <= cheapest(&costs) * 110);
        for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++) {
            uint64_t percent = costs.fixed[i] * 100 / cheapest(&costs);
            worst[i] = percent > worst[i] ? percent : worst[i];
        }
    }
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
        CHECK(worst[i] > 130);
}

/* What was worth keeping for longer is wanted sooner now, or, a little of it, not at all. */
TEST(a_keep_time_that_is_dearer_than_decay_gives_way)
{
    for (uint32_t i = 0; i < EPISODES; i++)
        come_back(10, 300);
    CHECK_EQ(hak_keep_ms(&past), 4 * DECAY_MS);
    for (uint32_t i = 0; i < 800; i++)
        come_back(10, i % 64 == 0 ? 3000 : 90);
    CHECK_EQ(hak_keep_ms(&past), DECAY_MS);
}

TEST(memory_that_left_late_never_came_back)
{
    for (uint32_t i = 0; i < EPISODES; i++)
        come_back(10, 1300);
    CHECK_EQ(hak_keep_ms(&past), 16 * DECAY_MS);
    for (uint32_t i = 0; i < 100; i++, now += 5000)
        hak_keep_left(&past, &(struct keep_ghost){.freed_ms = now, .count = 10}, now + 4000,
                      EPISODES);
    CHECK_EQ(hak_keep_ms(&past), DECAY_MS / 16);
}

/* Ten granules that are kept for 300 ms instead of being purged save 159 microseconds a case. */
TEST(a_longer_time_must_save_a_hundredth_of_the_processs_time)
{
    for (uint32_t i = 0; i < 10 * EPISODES; i++) {
        hak_store_relaxed(&hak_keep_busy_ns, (i + 1) * 20000000ull);
        come_back(10, 300);
    }
    CHECK_EQ(hak_keep_ms(&past), DECAY_MS);
    for (uint32_t i = 0; i < 10 * EPISODES; i++) {
        hak_fetch_add_relaxed(&hak_keep_busy_ns, 10000000);
        come_back(10, 300);
    }
    CHECK_EQ(hak_keep_ms(&past), 4 * DECAY_MS);
    for (uint32_t i = 0; i < 100 * EPISODES; i++) {
        hak_fetch_add_relaxed(&hak_keep_busy_ns, 20000000);
        come_back(10, 300);
    }
    CHECK_EQ(hak_keep_ms(&past), DECAY_MS);
}

TEST(a_shorter_time_need_not_be_felt)
{
    for (uint32_t i = 0; i < 300; i++, now += 3000) {
        hak_store_relaxed(&hak_keep_busy_ns, (i + 1) * 1000000000ull);
        hak_keep_left(&past, &(struct keep_ghost){.freed_ms = now, .count = 1}, now + DECAY_MS,
                      EPISODES);
    }
    CHECK_EQ(hak_keep_ms(&past), DECAY_MS / 16);
}
