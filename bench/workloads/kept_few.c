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
#include "bench.h"
#include "memory.h"
#include "wheel.h"

#include <math.h>
#include <unistd.h>

#define SAMPLES_PER_PERIOD 64

extern void *hakmem_malloc_long(size_t bytes) __attribute__((weak));

static struct {
    uint64_t step_count;
    uint64_t period;
    uint64_t per_thousand;
    uint64_t pause_ms;
    uint64_t hint;
    uint64_t seed;
} plan = {9000000, 1500000, 5, 20, 0, 42};

static struct bench_wheel wheel;
static uint32_t random_state;

static struct {
    double rss_mib;
    double live_mib;
    uint64_t count;
} everywhere, valleys;

static uint32_t draw(void)
{
    random_state = bench_xorshift32(random_state);
    return (uint32_t)(bench_mix64(random_state) >> 32);
}

static bool is_burst(uint64_t step)
{
    return step % plan.period < plan.period / 3;
}

static uint32_t life_of(uint64_t step, bool is_kept)
{
    double part = ((double)draw() + 0.5) / 4294967296.0;
    double period = (double)plan.period;
    double life = is_kept ? -log(part) * 2 * period : (0.05 + 0.1 * part) * period;
    if (!is_kept && !is_burst(step)) {
        life /= 100;
    }
    return life < 1 ? 1 : life >= BENCH_WHEEL_PLACES ? BENCH_WHEEL_PLACES - 1 : (uint32_t)life;
}

static void *take(size_t size_bytes, bool is_kept)
{
    if (!is_kept || plan.hint == 0 || !hakmem_malloc_long) {
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
    bench_wheel_free(&wheel, (uint32_t)(step % BENCH_WHEEL_PLACES));
    bool is_kept = bench_below(draw(), 1000) < plan.per_thousand;
    uint32_t size_bytes = sizes[bench_below(draw(), 3)];
    void *block = take(size_bytes, is_kept);
    uint32_t place = (uint32_t)((step + life_of(step, is_kept)) % BENCH_WHEEL_PLACES);
    bench_wheel_put(&wheel, place, block, size_bytes);
}

static void sample(uint64_t step)
{
    if (step < plan.period) {
        return;
    }
    double rss_mib = bench_rss_mib();
    everywhere.rss_mib += rss_mib;
    everywhere.count++;
    if (!is_burst(step)) {
        valleys.rss_mib += rss_mib;
        valleys.live_mib += (double)wheel.live_bytes / BENCH_MIB;
        valleys.count++;
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"STEPS", "blocks", &plan.step_count, 1, UINT32_MAX},
        {"PERIOD", "steps of a burst and a valley", &plan.period, 640, BENCH_WHEEL_PLACES / 8},
        {"PER_THOUSAND", "blocks that are kept", &plan.per_thousand, 0, 1000},
        {"PAUSE_MS", "sleep in the valley", &plan.pause_ms, 0, 10000},
        {"HINT", "1: these are said to stay", &plan.hint, 0, 1},
        {"SEED", "start of the random numbers", &plan.seed, 1, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Bursts of short-lived blocks, among which a few are kept.",
                         arguments, 6);
    random_state = bench_seed_for(plan.seed, 0);
    bench_wheel_start(&wheel, BENCH_WHEEL_PLACES);
    uint64_t elapsed_ns = 0, interval = plan.period / SAMPLES_PER_PERIOD;
    for (uint64_t step = 0; step < plan.step_count;) {
        uint64_t start_ns = bench_now_ns();
        for (uint64_t left = interval; left != 0 && step < plan.step_count; left--) {
            take_step(step++);
        }
        elapsed_ns += bench_now_ns() - start_ns;
        sample(step);
        if (!is_burst(step)) {
            usleep((useconds_t)plan.pause_ms * 1000);
        }
    }
    if (valleys.count != 0) {
        bench_note("live_valley: %.2f MiB", valleys.live_mib / (double)valleys.count);
        bench_note("rss_valley: %.2f MiB", valleys.rss_mib / (double)valleys.count);
        bench_note("rss_average: %.2f MiB", everywhere.rss_mib / (double)everywhere.count);
    }
    for (uint32_t place = 0; place < BENCH_WHEEL_PLACES; place++) {
        bench_wheel_free(&wheel, place);
    }
    bench_report(plan.step_count, elapsed_ns);
    return 0;
}
