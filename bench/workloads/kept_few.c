/* SPDX-License-Identifier: MIT */
/* bench/workloads/kept_few.c - bursts of short-lived blocks, among which a few are kept.
 *
 *   kept_few [STEPS] [PERIOD] [PER_THOUSAND] [PAUSE_MS] [HINT] [SEED]
 *
 * Models a server whose requests leave something behind: each of STEPS steps allocates a block of
 * 48, 128 or 512 bytes. PER_THOUSAND of them are kept, for a number of steps that is exponential
 * with a mean of two periods. The others live short: in the first third of each PERIOD, the burst,
 * for 0.05 to 0.15 of it, later, in the valley, for a hundredth of that. What is due is freed
 * first. In the valley the load is low: PAUSE_MS milliseconds of sleep after each 64th of a period,
 * off the clock. One operation is one step, its malloc and a free included.
 *
 * HINT 0: all blocks come from malloc. 1: those that will be kept come from hakmem_malloc_long,
 * where the program has it: what perfect knowledge of life times is worth.
 *
 * Notes: resident memory on average in the valleys and over all, and live memory in the valleys;
 * the first period does not count. All are sampled 64 times a period, off the clock.
 *
 * Checked at each free: both ends of the block.
 */
#include "season.h"

static uint64_t per_thousand = 5, hint, seed = 42;
static struct bench_season season = {
    .step_count = 9000000,
    .period = 1500000,
    .pause_ms = 20,
    .steps_per_place = 1,
    .valley_part = 0.01,
};

static void *take(size_t size_bytes, bool is_kept)
{
    if (!is_kept || hint == 0 || !hakmem_malloc_long) {
        return bench_take(size_bytes);
    }
    void *block = hakmem_malloc_long(size_bytes);
    if (!block) {
        bench_fail("hakmem_malloc_long returned NULL");
    }
    return block;
}

static void take_step(uint64_t step)
{
    static const uint32_t sizes[] = {48, 128, 512};
    bool is_kept = bench_below(bench_season_draw(&season), 1000) < per_thousand;
    uint32_t size_bytes = sizes[bench_below(bench_season_draw(&season), 3)];
    bench_season_put(&season, step, take(size_bytes, is_kept), size_bytes, is_kept);
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"STEPS", "blocks", &season.step_count, 1, UINT32_MAX},
        {"PERIOD", "steps of a burst and a valley", &season.period, 640, BENCH_WHEEL_PLACES / 8},
        {"PER_THOUSAND", "blocks that are kept", &per_thousand, 0, 1000},
        {"PAUSE_MS", "sleep in the valley", &season.pause_ms, 0, 10000},
        {"HINT", "1: these are said to stay", &hint, 0, 1},
        {"SEED", "start of the random numbers", &seed, 1, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Bursts of short-lived blocks, among which a few are kept.",
                         arguments, 6);
    season.random_state = bench_seed_for(seed, 0);
    bench_wheel_start(&season.wheel, BENCH_WHEEL_PLACES);
    uint64_t elapsed_ns = bench_season_run(&season, take_step);
    const struct bench_mean *valleys = &season.valleys;
    if (valleys->count != 0) {
        bench_note("live_valley: %.2f MiB", bench_mean_of(valleys->live_mib, valleys));
        bench_note("rss_valley: %.2f MiB", bench_mean_of(valleys->rss_mib, valleys));
        bench_note("rss_average: %.2f MiB",
                   bench_mean_of(season.everywhere.rss_mib, &season.everywhere));
    }
    bench_season_end(&season);
    bench_report(season.step_count, elapsed_ns);
    return 0;
}
