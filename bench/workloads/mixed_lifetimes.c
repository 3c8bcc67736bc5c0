/* SPDX-License-Identifier: MIT */
/* bench/workloads/mixed_lifetimes.c - blocks that live short, middling and long, side by side.
 *
 *   mixed_lifetimes [THREADS] [STEPS] [SEED]
 *
 * Models most programs: each of THREADS threads does STEPS steps; one allocates a block of 16 to
 * 2047 bytes (each doubling as likely as each other) that will live for a number of further steps:
 * 90 % less than 16, 9 % less than 4,096, 1 % less than 262,144. What is due is freed first. One
 * operation is one block, its malloc and its free included; all threads are counted together.
 *
 * Notes: what is live and resident after the last step.
 *
 * Checked at each free: both ends of the block.
 */
#include "bench.h"
#include "memory.h"
#include "team.h"

#define MOST_THREADS 256
#define WHEEL_COUNT 262144u /* steps that a block can live */

/* Blocks that are due at one step: the first of a list through `records`, by index + 1. */
struct record {
    void *block;
    uint32_t size_bytes;
    uint32_t next;
};

struct worker {
    _Alignas(BENCH_CACHE_LINE_BYTES) uint32_t random;
    uint32_t free_records;
    uint32_t used_records;
    uint64_t live_bytes;
    uint32_t *wheel;
    struct record *records;
};

static struct {
    uint64_t thread_count;
    uint64_t step_count;
    uint64_t seed;
} plan = {2, 6000000, 42};

static uint64_t key_of(const struct record *record)
{
    return bench_mix64((uintptr_t)record->block + record->size_bytes);
}

static void worker_free_due(struct worker *worker, uint32_t place)
{
    uint32_t number = worker->wheel[place];
    worker->wheel[place] = 0;
    while (number != 0) {
        struct record *record = &worker->records[number - 1];
        bench_mark_check(record->block, record->size_bytes, key_of(record));
        free(record->block);
        worker->live_bytes -= record->size_bytes;
        uint32_t next = record->next;
        record->next = worker->free_records;
        worker->free_records = number;
        number = next;
    }
}

static uint32_t lifetime_draw(uint32_t random)
{
    uint32_t kind = random % 100;
    return 1 + bench_below(random, kind < 90 ? 15 : kind < 99 ? 4095 : WHEEL_COUNT - 1);
}

static void worker_step(struct worker *worker, uint64_t step)
{
    worker_free_due(worker, (uint32_t)step % WHEEL_COUNT);
    uint32_t number = worker->free_records;
    if (number != 0) {
        worker->free_records = worker->records[number - 1].next;
    } else {
        number = ++worker->used_records;
    }
    struct record *record = &worker->records[number - 1];
    worker->random = bench_xorshift32(worker->random);
    record->size_bytes = (uint32_t)bench_size_log(bench_mix64(worker->random), 4, 11);
    record->block = bench_take(record->size_bytes);
    bench_mark(record->block, record->size_bytes, key_of(record));
    worker->live_bytes += record->size_bytes;
    uint32_t place = (uint32_t)(step + lifetime_draw(worker->random)) % WHEEL_COUNT;
    record->next = worker->wheel[place];
    worker->wheel[place] = number;
}

static void worker_work(void *argument)
{
    struct worker *worker = argument;
    for (uint64_t step = 0; step < plan.step_count; step++) {
        worker_step(worker, step);
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"THREADS", "threads", &plan.thread_count, 1, MOST_THREADS},
        {"STEPS", "steps of each thread", &plan.step_count, 1, UINT32_MAX},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Blocks that live short, middling and long, side by side.",
                         arguments, 3);
    static struct worker workers[MOST_THREADS];
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        workers[i].random = bench_seed_for(plan.seed, i);
        workers[i].wheel = bench_map(WHEEL_COUNT, sizeof(uint32_t));
        /* Only a step adds a record, and no block lives for more than WHEEL_COUNT of them. */
        workers[i].records = bench_map(WHEEL_COUNT + 1, sizeof(struct record));
    }
    uint64_t elapsed_ns =
        bench_team_run((uint32_t)plan.thread_count, worker_work, workers, sizeof(*workers));
    uint64_t live_bytes = 0;
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        live_bytes += workers[i].live_bytes;
    }
    bench_note("live: %.2f MiB", (double)live_bytes / BENCH_MIB);
    bench_note("rss: %.2f MiB", bench_rss_mib());
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        for (uint32_t place = 0; place < WHEEL_COUNT; place++) {
            worker_free_due(&workers[i], place);
        }
    }
    bench_report(plan.thread_count * plan.step_count, elapsed_ns);
    return 0;
}
