/* SPDX-License-Identifier: MIT */
/* bench/workloads/phase_server.c - a server through high load, buffers, little load, and back.
 *
 *   phase_server [PHASE_MS] [CACHE] [CYCLES] [SEED]
 *
 * Models a service in the course of a day, in one thread. A request allocates 20 blocks whose sizes
 * are lognormal (median 96 bytes, sigma 1, at most 2 KiB), writes and checks them and frees them at
 * its end; one request of 200 puts a block of such a size into a cache of CACHE entries, in place
 * of a random one. CYCLES times four phases of PHASE_MS milliseconds each:
 *
 *   full     requests, one after another
 *   buffers  64 live buffers of 4 to 256 KiB, replaced at random
 *   low      1 % of the rate of requests that `full` had
 *   large    requests, one after another, with sizes twice as large
 *
 * One operation is one request; the time is that of `full` and `large`.
 *
 * Notes: resident memory at the end of each phase, requests a second in `full` and `large`, and
 * the time that 99 % of the requests of all phases do not exceed.
 *
 * Checked at each free: both ends of the block.
 */
#include "bench.h"
#include "histogram.h"
#include "memory.h"

#include <math.h>

#define REQUEST_BLOCKS 20
#define REQUESTS_PER_INSERT 200
#define BUFFER_COUNT 64
#define SIZE_COUNT 65536
#define MOST_BYTES 2048
#define MEDIAN_BYTES 96.0

struct item {
    void *block;
    uint32_t size_bytes;
};

static struct {
    uint64_t phase_ms;
    uint64_t cache_count;
    uint64_t cycle_count;
    uint64_t seed;
} plan = {250, 200000, 2, 42};

static uint16_t *sizes;
static struct item *cache;
static struct item buffers[BUFFER_COUNT];
static struct histogram times;
static uint32_t random_state;
static uint64_t request_count;

static uint32_t random_draw(void)
{
    random_state = bench_xorshift32(random_state);
    return random_state;
}

/* Equally likely sizes: normal numbers by Box and Muller, as powers of e around the median. */
static void sizes_make(void)
{
    sizes = bench_map(SIZE_COUNT, sizeof(*sizes));
    for (uint32_t i = 0; i < SIZE_COUNT; i++) {
        double radius = sqrt(-2.0 * log(((double)random_draw() + 1.0) / 4294967297.0));
        double normal = radius * cos(6.283185307179586 * (double)random_draw() / 4294967296.0);
        double size_bytes = MEDIAN_BYTES * exp(normal);
        sizes[i] = size_bytes < 1 ? 1 : size_bytes > MOST_BYTES ? MOST_BYTES : (uint16_t)size_bytes;
    }
}

static void item_fill(struct item *item, uint32_t size_bytes)
{
    item->size_bytes = size_bytes;
    item->block = bench_take(size_bytes);
    bench_mark(item->block, size_bytes, bench_mix64((uintptr_t)item->block + size_bytes));
}

static void item_empty(struct item *item)
{
    if (item->block) {
        bench_mark_check(item->block, item->size_bytes,
                         bench_mix64((uintptr_t)item->block + item->size_bytes));
        free(item->block);
        item->block = NULL;
    }
}

static void item_replace(struct item *item, uint32_t size_bytes)
{
    item_empty(item);
    item_fill(item, size_bytes);
}

/* One request; returns the time when it ended. */
static uint64_t request_serve(uint32_t scale, uint64_t start_ns)
{
    struct item items[REQUEST_BLOCKS];
    for (uint32_t i = 0; i < REQUEST_BLOCKS; i++) {
        item_fill(&items[i], scale * sizes[random_draw() % SIZE_COUNT]);
    }
    for (uint32_t i = 0; i < REQUEST_BLOCKS; i++) {
        item_empty(&items[i]);
    }
    if (request_count++ % REQUESTS_PER_INSERT == 0) {
        item_replace(&cache[bench_below(random_draw(), (uint32_t)plan.cache_count)],
                     scale * sizes[random_draw() % SIZE_COUNT]);
    }
    uint64_t end_ns = bench_now_ns();
    histogram_add(&times, end_ns - start_ns);
    return end_ns;
}

/* Serves for the time of a phase; returns the time that it took, in nanoseconds. */
static uint64_t phase_serve(uint32_t scale)
{
    uint64_t start_ns = bench_now_ns();
    uint64_t now_ns = start_ns;
    while (now_ns - start_ns < plan.phase_ms * 1000000) {
        now_ns = request_serve(scale, now_ns);
    }
    return now_ns - start_ns;
}

static void phase_buffer(void)
{
    uint64_t end_ns = bench_now_ns() + plan.phase_ms * 1000000;
    while (bench_now_ns() < end_ns) {
        struct item *buffer = &buffers[bench_below(random_draw(), BUFFER_COUNT)];
        item_replace(buffer, 4096 + bench_below(random_draw(), 252 * 1024 + 1));
        memset((char *)buffer->block + 8, 0x5A, buffer->size_bytes - 9);
    }
    for (uint32_t i = 0; i < BUFFER_COUNT; i++) {
        item_empty(&buffers[i]);
    }
}

/* Serves a millisecond's worth of requests each 100 ms or, in short phases, each hundredth part. */
static void phase_idle(void)
{
    uint64_t end_ns = bench_now_ns() + plan.phase_ms * 1000000;
    for (;;) {
        uint64_t now_ns = bench_now_ns();
        if (now_ns >= end_ns) {
            return;
        }
        uint64_t busy_ns = plan.phase_ms >= 1000 ? 1000000 : plan.phase_ms * 1000;
        uint64_t busy_end_ns = now_ns + busy_ns;
        while (now_ns < busy_end_ns) {
            now_ns = request_serve(1, now_ns);
        }
        struct timespec pause = {0, (long)(busy_ns * 99 > 999999999 ? 999999999 : busy_ns * 99)};
        nanosleep(&pause, NULL);
    }
}

/* Requests a second of one phase, and its end. */
static uint64_t phase_busy(const char *name, uint64_t cycle, uint32_t scale)
{
    uint64_t before = request_count;
    uint64_t elapsed_ns = phase_serve(scale);
    bench_note("rss_%s_%" PRIu64 ": %.2f MiB", name, cycle, bench_rss_mib());
    bench_note("rate_%s_%" PRIu64 ": %.0f 1/s", name, cycle,
               (double)(request_count - before) / (double)elapsed_ns * 1e9);
    return elapsed_ns;
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"PHASE_MS", "milliseconds of a phase", &plan.phase_ms, 1, 3600000},
        {"CACHE", "entries of the cache", &plan.cache_count, 1, 1u << 28},
        {"CYCLES", "times the four phases", &plan.cycle_count, 1, 50},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "A server through high load, buffers, little load, and back.",
                         arguments, 4);
    random_state = bench_seed_for(plan.seed, 0);
    sizes_make();
    cache = bench_map(plan.cache_count, sizeof(*cache));
    for (uint64_t i = 0; i < plan.cache_count; i++) {
        item_fill(&cache[i], sizes[random_draw() % SIZE_COUNT]);
    }
    uint64_t elapsed_ns = 0;
    uint64_t timed_count = 0;
    for (uint64_t cycle = 1; cycle <= plan.cycle_count; cycle++) {
        uint64_t before = request_count;
        elapsed_ns += phase_busy("full", cycle, 1);
        timed_count += request_count - before;
        phase_buffer();
        bench_note("rss_buffers_%" PRIu64 ": %.2f MiB", cycle, bench_rss_mib());
        phase_idle();
        bench_note("rss_low_%" PRIu64 ": %.2f MiB", cycle, bench_rss_mib());
        before = request_count;
        elapsed_ns += phase_busy("large", cycle, 2);
        timed_count += request_count - before;
    }
    bench_note("request_p99: %" PRIu64 " ns", histogram_quantile(&times, 0.99));
    for (uint64_t i = 0; i < plan.cache_count; i++) {
        item_empty(&cache[i]);
    }
    bench_report(timed_count, elapsed_ns);
    return 0;
}
