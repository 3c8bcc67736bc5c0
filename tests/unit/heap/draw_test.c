/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/draw_test.c - samples come with the chance they should, and weigh what they
 * stand for. If this fails, profiles are wrong for some sizes. */
#include "heap/draw.h"

#include "base/float_state.h"

#include "../../check.h"
#include "threads.h"

#define MEAN 4096u
#define DRAWS 2000000u

/* 1 - e^-x by its definition, slowly. */
static double chance_of(double x)
{
    double power = 1;
    for (int i = 0; i < 1 << 20; i++)
        power *= 1 - x / (1 << 20);
    return 1 - power;
}

static void check_near(double found, double expected, double share)
{
    double off = found / expected - 1;
    CHECK(off < share && -off < share);
}

/* Six standard errors of so many draws. */
static double error_of(double chance)
{
    double variance = (1 - chance) / chance / DRAWS, root = 1;
    for (int i = 0; i < 60; i++)
        root = (root + variance / root) / 2;
    return 6 * root + 1e-5;
}

static const size_t sizes[] = {8, 64, 1000, 4096, 10000, 30000};
#define SIZES (sizeof sizes / sizeof *sizes)

TEST(a_coin_falls_as_often_as_the_size_says)
{
    hak_draw_start(MEAN, 0, 0);
    for (uint32_t i = 0; i < SIZES; i++) {
        double chance = chance_of((double)sizes[i] / MEAN);
        uint32_t fallen = 0;
        for (uint32_t k = 0; k < DRAWS; k++)
            fallen += hak_draw_coin(sizes[i]) != 0;
        check_near((double)fallen / DRAWS, chance, error_of(chance));
    }
}

TEST(weights_have_the_inverse_of_the_chance_as_their_mean)
{
    hak_draw_start(MEAN, 0, 0);
    for (uint32_t i = 0; i < SIZES; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < DRAWS; k++)
            sum += (double)hak_draw_weight(sizes[i], 0);
        check_near(sum / DRAWS, 1 / chance_of((double)sizes[i] / MEAN), 0.002);
    }
}

/* The share of distances of just so many, and of more than many, is the geometric one. */
TEST(distances_are_geometric)
{
    hak_draw_start(MEAN, 0, 0);
    for (uint32_t i = 0; i < SIZES; i++) {
        double chance = chance_of((double)sizes[i] / MEAN), first = 0, sum = 0;
        uint32_t most = 100000;
        for (uint32_t k = 0; k < DRAWS; k++) {
            uint32_t distance = hak_draw_distance(sizes[i], 0, most);
            CHECK(distance >= 1 && distance <= most + 1);
            first += distance == 1;
            sum += distance;
        }
        check_near(first / DRAWS, chance, error_of(chance));
        check_near(sum / DRAWS, 1 / chance, 0.006);
    }
}

TEST(distances_beyond_the_countdown_are_told_as_one_more)
{
    hak_draw_start(MEAN * 1000, 0, 0);
    uint32_t beyond = 0;
    for (uint32_t k = 0; k < DRAWS; k++) {
        uint32_t distance = hak_draw_distance(64, 0, 65536);
        CHECK(distance <= 65537);
        beyond += distance == 65537;
    }
    check_near((double)beyond / DRAWS, 1 - chance_of(64.0 * 65536 / (MEAN * 1000)), 0.02);
}

/* Requests of so many bytes, as many a second, for so many seconds: the samples, and what they
 * stand for in bytes. */
struct paced {
    double samples;
    double bytes;
};

static struct paced run_paced(uint64_t *now_ns, size_t bytes, double a_second, double seconds)
{
    struct paced paced = {0, 0};
    for (double i = 0; i < a_second * seconds; i++) {
        uint64_t weight = hak_draw_coin(bytes);
        if (weight == 0)
            continue;
        hak_draw_pace(*now_ns + (uint64_t)(i / a_second * 1e9));
        paced.samples++;
        paced.bytes += (double)weight * (double)bytes;
    }
    *now_ns += (uint64_t)(seconds * 1e9);
    return paced;
}

/* 20,000 samples a second would come, 1,000 are paid for. */
TEST(samples_that_come_too_fast_grow_rarer_and_heavier)
{
    uint64_t now_ns = 1;
    hak_draw_start(MEAN, 1000, 0);
    struct paced paced = {0, 0};
    uint32_t most = 0; /* doublings: 4 or 5, and in some moments fewer */
    for (int i = 0; i < 10; i++) {
        struct paced half = run_paced(&now_ns, 64, 20000.0 * MEAN / 64, 0.5);
        paced.samples += half.samples;
        paced.bytes += half.bytes;
        most = hak_draw_doublings() > most ? hak_draw_doublings() : most;
    }
    CHECK(paced.samples <= 5 * 1000 + 68 + 17 * most + 1);
    CHECK(paced.samples > 2000);
    check_near(paced.bytes, 20000.0 * MEAN * 5, 0.15);
    CHECK(most >= 4);
    run_paced(&now_ns, 64, 100.0 * MEAN / 64, 30);
    CHECK_EQ(hak_draw_doublings(), 0);
}

TEST(without_a_pace_the_distance_stays)
{
    uint64_t now_ns = 1;
    hak_draw_start(MEAN, 0, 0);
    struct paced paced = run_paced(&now_ns, 64, 20000.0 * MEAN / 64, 1);
    check_near(paced.samples, 20000, 0.05);
    CHECK_EQ(hak_draw_doublings(), 0);
}

/* A distance that was drawn before the mean doubled weighs what it weighed then. */
TEST(weights_follow_the_mean_of_their_draw)
{
    hak_draw_start(MEAN, 0, 0);
    for (uint32_t times = 0; times < 4; times++) {
        double sum = 0, distances = 0;
        for (uint32_t k = 0; k < DRAWS; k++) {
            sum += (double)hak_draw_weight(64, times);
            distances += hak_draw_distance(64, times, 1u << 30);
        }
        double chance = chance_of(64.0 / (MEAN << times));
        check_near(sum / DRAWS, 1 / chance, 0.002);
        check_near(distances / DRAWS, 1 / chance, 0.006);
    }
}

static void *draw_first(void *first)
{
    *(uint64_t *)first = hak_draw_random();
    return NULL;
}

/* Stacks are used again, with the thread-local variables in them. */
TEST(threads_one_after_the_other_draw_different_numbers)
{
    uint64_t drawn[16];
    for (int i = 0; i < 16; i++) {
        in_thread(draw_first, &drawn[i]);
        for (int k = 0; k < i; k++)
            CHECK(drawn[k] != drawn[i]);
    }
}

TEST(draws_trap_nothing_and_leave_the_flags_of_floating_point)
{
    hak_draw_start(1 << 20, 0, 1);
    uint64_t sum = 0;
    struct float_state before = hak_float_begin();
    hak_float_end(HAK_FLOAT_TRAPS);
    struct float_state none = hak_float_begin(); /* as far as the processor has traps */
    hak_float_end(none);
    for (size_t bytes = 1000; bytes < 3000; bytes++)
        sum += hak_draw_distance(bytes, 1, 1 << 16) + hak_draw_weight(bytes, 3) +
               hak_draw_coin(bytes << 9);
    struct float_state after = hak_float_begin();
    hak_float_end(before);
    CHECK_EQ(after.control, none.control);
    CHECK_EQ(after.flags, none.flags);
    CHECK(sum != 0);
}
