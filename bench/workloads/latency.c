/* SPDX-License-Identifier: MIT */
/* bench/workloads/latency.c - how long each single malloc and free takes.
 *
 *   latency [THREADS] [STEPS] [SLOTS] [MOST_SHIFT] [SEED] [REALTIME]
 *
 * Models a program that must answer soon: each of THREADS threads has SLOTS slots, full from the
 * start, and does STEPS steps; one frees the block in a random slot and puts one of 16 to
 * 2^MOST_SHIFT - 1 bytes there (each doubling as likely as each other). Every eighth free is that
 * of a block of the next thread, when there are several. Each call is timed by itself. One
 * operation is one step; all threads are counted together. The throughput holds the clock, too.
 * With REALTIME 1 the first thread has a real-time priority (SCHED_FIFO) and rests for a moment
 * after every 64 steps; the others work until it has done its steps, and the notes are of it alone.
 *
 * Notes: nanoseconds of malloc and free that 50, 90, 99, 99.9, 99.99 and 99.9999 % of the calls do
 * not exceed, and the longest; and the same shares of two readings of the clock with nothing
 * between. All include the reading of a clock (about as much as `clock_p50`).
 *
 * Checked at each free: both ends of the block.
 */
#include "bench.h"
#include "histogram.h"
#include "team.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#define MOST_THREADS 1024
#define LEAST_SHIFT 4

struct worker {
    _Alignas(BENCH_CACHE_LINE_BYTES) struct worker *next;
    _Atomic(void *) *slots;
    uint32_t random;
    uint64_t done_count;
    struct histogram taking;
    struct histogram freeing;
    struct histogram clock;
};

static struct {
    uint64_t thread_count;
    uint64_t step_count;
    uint64_t slot_count;
    uint64_t most_shift;
    uint64_t seed;
    uint64_t realtime;
} plan = {2, 1000000, 10000, 12, 42, 0};

static struct worker workers[MOST_THREADS];
static atomic_bool is_over; /* the real-time thread's steps */

static void *block_take(struct worker *worker)
{
    worker->random = bench_xorshift32(worker->random);
    size_t size_bytes =
        bench_size_log(bench_mix64(worker->random), LEAST_SHIFT, (uint32_t)plan.most_shift);
    uint64_t start_ns = bench_now_ns();
    void *block = malloc(size_bytes);
    uint64_t end_ns = bench_now_ns();
    histogram_add(&worker->taking, end_ns - start_ns);
    if (!block) {
        bench_fail("malloc(%zu) returned NULL", size_bytes);
    }
    bench_stamp(block, size_bytes, worker->random);
    return block;
}

static void block_free(struct worker *worker, void *block)
{
    bench_stamp_check(block);
    uint64_t start_ns = bench_now_ns();
    free(block);
    uint64_t end_ns = bench_now_ns();
    histogram_add(&worker->freeing, end_ns - start_ns);
}

static bool is_realtime(const struct worker *worker)
{
    return plan.realtime != 0 && worker == workers;
}

static void realtime_start(void)
{
    const struct sched_param priority = {.sched_priority = 10};
    if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
        bench_fail("no right to a real-time priority");
    }
}

/* So that the kernel, which bounds the share of real-time threads, does not stop this one. */
static void realtime_rest(void)
{
    const struct timespec rest = {.tv_nsec = 200000};
    nanosleep(&rest, NULL);
}

static bool worker_goes_on(const struct worker *worker, uint64_t step)
{
    if (plan.realtime != 0 && !is_realtime(worker)) {
        return !atomic_load_explicit(&is_over, memory_order_relaxed);
    }
    return step < plan.step_count;
}

static void worker_work(void *argument)
{
    struct worker *worker = argument;
    if (is_realtime(worker)) {
        realtime_start();
    }
    uint64_t step = 0;
    for (; worker_goes_on(worker, step); step++) {
        if (is_realtime(worker) && step % 64 == 0) {
            realtime_rest();
        }
        worker->random = bench_xorshift32(worker->random);
        uint32_t index = bench_below(worker->random, (uint32_t)plan.slot_count);
        struct worker *from = step % 8 == 0 ? worker->next : worker;
        void *block = block_take(worker);
        /* Release hands the stamp over, acquire receives that of the other block. */
        block = atomic_exchange_explicit(&from->slots[index], block, memory_order_acq_rel);
        block_free(worker, block);
        if (step % 16 == 0) {
            uint64_t start_ns = bench_now_ns();
            histogram_add(&worker->clock, bench_now_ns() - start_ns);
        }
    }
    worker->done_count = step;
    if (is_realtime(worker)) {
        atomic_store_explicit(&is_over, true, memory_order_relaxed);
    }
}

static void worker_start(struct worker *worker, uint32_t index)
{
    worker->random = bench_seed_for(plan.seed, index);
    worker->slots = bench_table(plan.slot_count, sizeof(*worker->slots));
    for (uint64_t i = 0; i < plan.slot_count; i++) {
        atomic_init(&worker->slots[i], block_take(worker));
    }
    worker->taking = (struct histogram){0};
}

static void worker_end(struct worker *worker)
{
    for (uint64_t i = 0; i < plan.slot_count; i++) {
        void *block = atomic_load_explicit(&worker->slots[i], memory_order_relaxed);
        bench_stamp_check(block);
        free(block);
    }
    free(worker->slots);
}

static void histogram_note(const char *name, const struct histogram *histogram)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {
        {"p50", 0.5},    {"p90", 0.9},      {"p99", 0.99},
        {"p999", 0.999}, {"p9999", 0.9999}, {"p999999", 0.999999},
    };
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        bench_note("%s_%s: %" PRIu64 " ns", name, quantiles[i].name,
                   histogram_quantile(histogram, quantiles[i].share));
    }
    bench_note("%s_max: %" PRIu64 " ns", name, histogram->most);
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"THREADS", "threads", &plan.thread_count, 1, MOST_THREADS},
        {"STEPS", "steps of each thread", &plan.step_count, 1, UINT32_MAX},
        {"SLOTS", "blocks of each thread", &plan.slot_count, 1, 1u << 28},
        {"MOST_SHIFT", "blocks are below 2^MOST_SHIFT bytes", &plan.most_shift, 5, 30},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
        {"REALTIME", "1: the first thread has a real-time priority", &plan.realtime, 0, 1},
    };
    bench_arguments_read(argc, argv, "How long each single malloc and free takes.", arguments, 6);
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        worker_start(&workers[i], i);
        workers[i].next = &workers[(i + 1) % plan.thread_count];
    }
    uint64_t elapsed_ns =
        bench_team_run((uint32_t)plan.thread_count, worker_work, workers, sizeof(*workers));
    uint64_t done_count = 0;
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        worker_end(&workers[i]);
        done_count += workers[i].done_count;
        if (i > 0 && plan.realtime == 0) {
            histogram_merge(&workers[0].taking, &workers[i].taking);
            histogram_merge(&workers[0].freeing, &workers[i].freeing);
            histogram_merge(&workers[0].clock, &workers[i].clock);
        }
    }
    histogram_note("malloc", &workers[0].taking);
    histogram_note("free", &workers[0].freeing);
    histogram_note("clock", &workers[0].clock);
    bench_report(done_count, elapsed_ns);
    return 0;
}
