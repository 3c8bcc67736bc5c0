/* SPDX-License-Identifier: MIT */
/* bench/workloads/kept_sites.c - bursts of short-lived blocks, and call sites whose blocks stay.
 *
 *   kept_sites [STEPS] [PERIOD] [BYTES] [PER_THOUSAND] [PAUSE_MS] [HINT] [WRAPPER] [SWAP] [SEED]
 *
 * As kept_few, but sixteen times as large, and what stays comes from call sites of its own: each of
 * STEPS steps allocates a block of BYTES bytes. PER_THOUSAND of them come from one of four sites
 * and are kept, for a number of steps that is exponential with a mean of two periods; the others
 * come from one of twelve and live short: in the first third of each PERIOD, the burst, for 0.15 to
 * 0.45 of the burst, later, in the valley, for a fiftieth of that. What is due is freed first. In
 * the valley the load is low: PAUSE_MS milliseconds of sleep after each 64th of a period, off the
 * clock. One operation is one step, its malloc and a free included.
 *
 * HINT 1: what will be kept comes from hakmem_malloc_long, where the program has it: perfect
 * knowledge. WRAPPER 1: all sites allocate by one function. SWAP: so many times, evenly over the
 * steps, the next four sites keep their blocks, and the last four do not any more.
 *
 * Notes: live and resident memory on average in the valleys, resident in those of the second half
 * of the steps, and on average over all; the first period does not count. All are sampled 64 times
 * a period, off the clock.
 *
 * Checked at each free: both ends of the block.
 */
#include "season.h"

#define RECORDS_MOST (1u << 23)
#define SITE_COUNT 16u
#define KEEPING_COUNT 4u

static uint64_t size_bytes = 128, per_thousand = 5, hint, uses_wrapper, swaps, seed = 42;
static struct bench_season season = {
    .step_count = 144000000,
    .period = 24000000,
    .pause_ms = 20,
    .steps_per_place = 16,
    .valley_part = 0.02,
};

/* The sites: functions of one call each, which the compiler keeps apart. */
__attribute__((noinline)) static void *wrapper(size_t bytes)
{
    void *block = malloc(bytes);
    __asm__ volatile("" ::: "memory");
    return block;
}

#define SITE(number)                                                                               \
    __attribute__((noinline)) static void *site_##number(size_t bytes)                             \
    {                                                                                              \
        void *block = uses_wrapper ? wrapper(bytes) : malloc(bytes);                               \
        __asm__ volatile("" ::"i"(number) : "memory");                                             \
        return block;                                                                              \
    }
#define SITES(X)                                                                                   \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
SITES(SITE)
#define ROW(number) site_##number,
static void *(*const sites[SITE_COUNT])(size_t bytes) = {SITES(ROW)};

static uint32_t site_of(uint64_t step, bool is_kept)
{
    uint32_t first = (uint32_t)(step * (swaps + 1) / season.step_count) * KEEPING_COUNT;
    uint32_t random = bench_season_draw(&season);
    uint32_t number = is_kept ? bench_below(random, KEEPING_COUNT)
                              : KEEPING_COUNT + bench_below(random, SITE_COUNT - KEEPING_COUNT);
    return (first + number) % SITE_COUNT;
}

static void *take(uint64_t step, bool is_kept)
{
    uint32_t site = site_of(step, is_kept);
    bool is_said = is_kept && hint != 0 && hakmem_malloc_long != NULL;
    void *block = is_said ? hakmem_malloc_long(size_bytes) : sites[site](size_bytes);
    if (!block) {
        bench_fail("no memory for a block of %zu bytes", (size_t)size_bytes);
    }
    return block;
}

static void take_step(uint64_t step)
{
    bool is_kept = bench_below(bench_season_draw(&season), 1000) < per_thousand;
    bench_season_put(&season, step, take(step, is_kept), (uint32_t)size_bytes, is_kept);
}

static void tell(const struct bench_mean *valleys, const struct bench_mean *late_valleys,
                 const struct bench_mean *everywhere)
{
    if (valleys->count == 0 || late_valleys->count == 0) {
        return;
    }
    bench_note("live_valley: %.2f MiB", bench_mean_of(valleys->live_mib, valleys));
    bench_note("rss_valley: %.2f MiB", bench_mean_of(valleys->rss_mib, valleys));
    bench_note("rss_late_valley: %.2f MiB", bench_mean_of(late_valleys->rss_mib, late_valleys));
    bench_note("rss_average: %.2f MiB", bench_mean_of(everywhere->rss_mib, everywhere));
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"STEPS", "blocks", &season.step_count, 1, UINT32_MAX},
        {"PERIOD", "steps of a burst and a valley", &season.period, 6400, BENCH_WHEEL_PLACES * 2},
        {"BYTES", "of each block", &size_bytes, 16, 65536},
        {"PER_THOUSAND", "blocks that are kept", &per_thousand, 0, 20},
        {"PAUSE_MS", "sleep in the valley", &season.pause_ms, 0, 10000},
        {"HINT", "1: these are said to stay", &hint, 0, 1},
        {"WRAPPER", "1: all call one function, which allocates", &uses_wrapper, 0, 1},
        {"SWAP", "so many times other sites keep their blocks", &swaps, 0, 1000},
        {"SEED", "start of the random numbers", &seed, 1, UINT32_MAX},
    };
    bench_arguments_read(argc, argv,
                         "Bursts of short-lived blocks, and call sites whose blocks stay.",
                         arguments, 9);
    season.random_state = bench_seed_for(seed, 0);
    bench_wheel_start(&season.wheel, RECORDS_MOST);
    uint64_t elapsed_ns = bench_season_run(&season, take_step);
    tell(&season.valleys, &season.late_valleys, &season.everywhere);
    bench_season_end(&season);
    bench_report(season.step_count, elapsed_ns);
    return 0;
}
