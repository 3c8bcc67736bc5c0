/* SPDX-License-Identifier: MIT */
/* bench/workloads/season.h - bursts of short-lived blocks and valleys between, in which a few
 * blocks that are kept remain.
 *
 * Owns        struct bench_season: the wheel that the blocks are freed by, the random numbers, and
 *             what was in memory.
 * Invariants  the first third of a period is its burst. A block that is kept lives for a number of
 *             steps that is exponential with a mean of two periods; others for 0.05 to 0.15 of a
 *             period, or in a valley for a part of that.
 * Threads     one.
 * Tests       tests/tools/test_workloads.py
 */
#ifndef BENCH_WORKLOADS_SEASON_H
#define BENCH_WORKLOADS_SEASON_H

#include "bench.h"
#include "memory.h"
#include "wheel.h"

#include <math.h>
#include <unistd.h>

#define BENCH_SAMPLES_PER_PERIOD 64

/* What perfect knowledge of life times is worth: of the allocator's, where it has it. */
extern void *hakmem_malloc_long(size_t bytes) __attribute__((weak));

struct bench_mean {
    double rss_mib;
    double live_mib;
    uint64_t count;
};

struct bench_season {
    uint64_t step_count;
    uint64_t period;   /* steps of a burst and a valley */
    uint64_t pause_ms; /* after each sample in a valley, off the clock */
    uint32_t steps_per_place;
    double valley_part; /* of the life in a burst */
    struct bench_wheel wheel;
    uint32_t random_state;
    struct bench_mean everywhere, valleys, late_valleys; /* but for the first period */
};

static inline uint32_t bench_season_draw(struct bench_season *season)
{
    season->random_state = bench_xorshift32(season->random_state);
    return (uint32_t)(bench_mix64(season->random_state) >> 32);
}

static inline bool bench_season_is_burst(const struct bench_season *season, uint64_t step)
{
    return step % season->period < season->period / 3;
}

/* Puts a block of the step on the wheel. */
static inline void bench_season_put(struct bench_season *season, uint64_t step, void *block,
                                    uint32_t size_bytes, bool is_kept)
{
    double part = ((double)bench_season_draw(season) + 0.5) / 4294967296.0;
    double period = (double)season->period / season->steps_per_place;
    double life = is_kept ? -log(part) * 2 * period : (0.05 + 0.1 * part) * period;
    if (!is_kept && !bench_season_is_burst(season, step)) {
        life *= season->valley_part;
    }
    uint32_t places = life < 1                     ? 1
                      : life >= BENCH_WHEEL_PLACES ? BENCH_WHEEL_PLACES - 1
                                                   : (uint32_t)life;
    uint64_t due = step / season->steps_per_place + places;
    bench_wheel_put(&season->wheel, (uint32_t)(due % BENCH_WHEEL_PLACES), block, size_bytes);
}

static inline void bench_season_add(struct bench_season *season, struct bench_mean *mean,
                                    double rss_mib)
{
    mean->rss_mib += rss_mib;
    mean->live_mib += (double)season->wheel.live_bytes / BENCH_MIB;
    mean->count++;
}

static inline void bench_season_sample(struct bench_season *season, uint64_t step)
{
    if (step < season->period) {
        return;
    }
    double rss_mib = bench_rss_mib();
    bench_season_add(season, &season->everywhere, rss_mib);
    if (bench_season_is_burst(season, step)) {
        return;
    }
    bench_season_add(season, &season->valleys, rss_mib);
    if (step >= season->step_count / 2) {
        bench_season_add(season, &season->late_valleys, rss_mib);
    }
}

/* All steps, each with a call of `take`; returns their time without pauses and samples. */
static inline uint64_t bench_season_run(struct bench_season *season, void (*take)(uint64_t step))
{
    uint64_t elapsed_ns = 0, interval = season->period / BENCH_SAMPLES_PER_PERIOD;
    for (uint64_t step = 0; step < season->step_count;) {
        uint64_t start_ns = bench_now_ns();
        for (uint64_t left = interval; left != 0 && step < season->step_count; left--) {
            if (step % season->steps_per_place == 0) {
                uint64_t turned = step / season->steps_per_place;
                bench_wheel_free(&season->wheel, (uint32_t)(turned % BENCH_WHEEL_PLACES));
            }
            take(step++);
        }
        elapsed_ns += bench_now_ns() - start_ns;
        bench_season_sample(season, step);
        if (!bench_season_is_burst(season, step)) {
            usleep((useconds_t)season->pause_ms * 1000);
        }
    }
    return elapsed_ns;
}

static inline double bench_mean_of(double sum, const struct bench_mean *mean)
{
    return sum / (double)mean->count;
}

/* Frees what is left. */
static inline void bench_season_end(struct bench_season *season)
{
    for (uint32_t place = 0; place < BENCH_WHEEL_PLACES; place++) {
        bench_wheel_free(&season->wheel, place);
    }
}

#endif
