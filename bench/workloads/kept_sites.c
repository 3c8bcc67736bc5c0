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
 * knowledge. WRAPPER 1: all sites allocate by one function. SWAP 1: after half of the steps four of
 * the short-lived sites keep their blocks, and the four others do not any more.
 *
 * Notes: live and resident memory on average in the valleys, resident in those of the second half
 * of the steps, and on average over all; the first period does not count. All are sampled 64 times
 * a period, off the clock.
 *
 * Checked at each free: both ends of the block.
 */
#include "bench.h"
#include "memory.h"
#include "wheel.h"

#include <math.h>
#include <unistd.h>

#define STEPS_PER_PLACE 16u /* steps that share a place of the wheel */
#define SAMPLES_PER_PERIOD 64
#define RECORDS_MOST (1u << 23)
#define SITE_COUNT 16u
#define KEEPING_COUNT 4u

extern void *hakmem_malloc_long(size_t bytes) __attribute__((weak));

static struct {
    uint64_t step_count;
    uint64_t period;
    uint64_t size_bytes;
    uint64_t per_thousand;
    uint64_t pause_ms;
    uint64_t hint;
    uint64_t wrapper;
    uint64_t swap;
    uint64_t seed;
} plan = {144000000, 24000000, 128, 5, 20, 0, 0, 0, 42};

static struct bench_wheel wheel;
static uint32_t random_state;

static struct mean {
    double rss_mib;
    double live_mib;
    uint64_t count;
} everywhere, valleys, late_valleys;

static uint32_t draw(void)
{
    random_state = bench_xorshift32(random_state);
    return (uint32_t)(bench_mix64(random_state) >> 32);
}

static bool is_burst(uint64_t step)
{
    return step % plan.period < plan.period / 3;
}

/* In places of the wheel. */
static uint32_t life_of(uint64_t step, bool is_kept)
{
    double part = ((double)draw() + 0.5) / 4294967296.0;
    double period = (double)plan.period / STEPS_PER_PLACE;
    double life = is_kept ? -log(part) * 2 * period : (0.05 + 0.1 * part) * period;
    if (!is_kept && !is_burst(step)) {
        life /= 50;
    }
    return life < 1 ? 1 : life >= BENCH_WHEEL_PLACES ? BENCH_WHEEL_PLACES - 1 : (uint32_t)life;
}

/* The sites: functions of one call each, which the compiler keeps apart. */
__attribute__((noinline)) static void *wrapper(size_t size_bytes)
{
    void *block = malloc(size_bytes);
    __asm__ volatile("" ::: "memory");
    return block;
}

#define SITE(number)                                                                               \
    __attribute__((noinline)) static void *site_##number(size_t size_bytes)                        \
    {                                                                                              \
        void *block = plan.wrapper ? wrapper(size_bytes) : malloc(size_bytes);                     \
        __asm__ volatile("" ::"i"(number) : "memory");                                             \
        return block;                                                                              \
    }
#define SITES(X)                                                                                   \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
SITES(SITE)
#define ROW(number) site_##number,
static void *(*const sites[SITE_COUNT])(size_t size_bytes) = {SITES(ROW)};

static uint32_t site_of(uint64_t step, bool is_kept)
{
    uint32_t first = plan.swap && step >= plan.step_count / 2 ? KEEPING_COUNT : 0;
    uint32_t number = is_kept ? bench_below(draw(), KEEPING_COUNT)
                              : KEEPING_COUNT + bench_below(draw(), SITE_COUNT - KEEPING_COUNT);
    return (first + number) % SITE_COUNT;
}

static void *take(uint64_t step, size_t size_bytes, bool is_kept)
{
    uint32_t site = site_of(step, is_kept);
    bool is_said = is_kept && plan.hint != 0 && hakmem_malloc_long != NULL;
    void *block = is_said ? hakmem_malloc_long(size_bytes) : sites[site](size_bytes);
    if (!block) {
        bench_fail("no memory for a block of %zu bytes", size_bytes);
    }
    return block;
}

static void take_step(uint64_t step)
{
    uint64_t turned = step / STEPS_PER_PLACE;
    if (step % STEPS_PER_PLACE == 0) {
        bench_wheel_free(&wheel, (uint32_t)(turned % BENCH_WHEEL_PLACES));
    }
    bool is_kept = bench_below(draw(), 1000) < plan.per_thousand;
    void *block = take(step, plan.size_bytes, is_kept);
    uint32_t place = (uint32_t)((turned + life_of(step, is_kept)) % BENCH_WHEEL_PLACES);
    bench_wheel_put(&wheel, place, block, (uint32_t)plan.size_bytes);
}

static void add(struct mean *mean, double rss_mib)
{
    mean->rss_mib += rss_mib;
    mean->live_mib += (double)wheel.live_bytes / BENCH_MIB;
    mean->count++;
}

static void sample(uint64_t step)
{
    if (step < plan.period) {
        return;
    }
    double rss_mib = bench_rss_mib();
    add(&everywhere, rss_mib);
    if (!is_burst(step)) {
        add(&valleys, rss_mib);
        if (step >= plan.step_count / 2) {
            add(&late_valleys, rss_mib);
        }
    }
}

static void tell(void)
{
    if (valleys.count == 0 || late_valleys.count == 0) {
        return;
    }
    bench_note("live_valley: %.2f MiB", valleys.live_mib / (double)valleys.count);
    bench_note("rss_valley: %.2f MiB", valleys.rss_mib / (double)valleys.count);
    bench_note("rss_late_valley: %.2f MiB", late_valleys.rss_mib / (double)late_valleys.count);
    bench_note("rss_average: %.2f MiB", everywhere.rss_mib / (double)everywhere.count);
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"STEPS", "blocks", &plan.step_count, 1, UINT32_MAX},
        {"PERIOD", "steps of a burst and a valley", &plan.period, 6400, BENCH_WHEEL_PLACES * 2},
        {"BYTES", "of each block", &plan.size_bytes, 16, 65536},
        {"PER_THOUSAND", "blocks that are kept", &plan.per_thousand, 0, 20},
        {"PAUSE_MS", "sleep in the valley", &plan.pause_ms, 0, 10000},
        {"HINT", "1: these are said to stay", &plan.hint, 0, 1},
        {"WRAPPER", "1: all call one function, which allocates", &plan.wrapper, 0, 1},
        {"SWAP", "1: other sites keep their blocks after half of the steps", &plan.swap, 0, 1},
        {"SEED", "start of the random numbers", &plan.seed, 1, UINT32_MAX},
    };
    bench_arguments_read(argc, argv,
                         "Bursts of short-lived blocks, and call sites whose blocks stay.",
                         arguments, 9);
    random_state = bench_seed_for(plan.seed, 0);
    bench_wheel_start(&wheel, RECORDS_MOST);
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
    tell();
    for (uint32_t place = 0; place < BENCH_WHEEL_PLACES; place++) {
        bench_wheel_free(&wheel, place);
    }
    bench_report(plan.step_count, elapsed_ns);
    return 0;
}
