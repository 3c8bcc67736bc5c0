/* SPDX-License-Identifier: MIT */
/* bench/workloads/cross_thread.c - many more threads than CPUs, all freeing each other's blocks.
 *
 *   cross_thread [THREADS] [STEPS] [SLOTS] [BOX] [SEED]
 *
 * Models a busy server of tasks that pass messages: each of THREADS threads (0: four for each CPU)
 * does STEPS steps on SLOTS slots of its own and has a letter box of BOX places. A step replaces
 * the block in a random slot by one of 8 bytes to 16 KiB, each doubling as likely as each other;
 * every second old block goes into a random place of a random thread's box, and what lay there is
 * freed at once, by the thread that put the new one there. All else is freed by its own thread. One
 * operation is one step; all threads are counted together.
 *
 * Checked at each free: both ends of a block; blocks below 16 bytes: its only word.
 */
#include "bench.h"
#include "team.h"

#include <stdatomic.h>

#define MOST_THREADS 4096
#define LEAST_SHIFT 3
#define MOST_SHIFT 14

/* What a slot or a place holds: the address and, in the bits above it, the size less one. */
typedef uint64_t parcel_word;
#define ADDRESS_BITS 48

struct worker {
    _Alignas(BENCH_CACHE_LINE_BYTES) uint32_t random;
    parcel_word *slots;
    atomic_uint_fast64_t *box;
};

static struct {
    uint64_t thread_count;
    uint64_t step_count;
    uint64_t slot_count;
    uint64_t box_count;
    uint64_t seed;
} plan = {0, 600000, 1000, 64, 42};

static struct worker workers[MOST_THREADS];

static parcel_word parcel_make(uint32_t random)
{
    size_t size_bytes = bench_size_log(bench_mix64(random + plan.seed), LEAST_SHIFT, MOST_SHIFT);
    void *block = bench_take(size_bytes);
    uint64_t address = (uintptr_t)block;
    bench_mark(block, size_bytes, bench_mix64(address + size_bytes));
    return address | (uint64_t)(size_bytes - 1) << ADDRESS_BITS;
}

static void parcel_free(parcel_word parcel)
{
    if (parcel == 0) {
        return;
    }
    uint64_t address = parcel & (((uint64_t)1 << ADDRESS_BITS) - 1);
    size_t size_bytes = (size_t)(parcel >> ADDRESS_BITS) + 1;
    bench_mark_check((void *)(uintptr_t)address, size_bytes, bench_mix64(address + size_bytes));
    free((void *)(uintptr_t)address);
}

static void worker_work(void *argument)
{
    struct worker *worker = argument;
    uint32_t random = worker->random;
    for (uint64_t left = plan.step_count; left != 0; left--) {
        random = bench_xorshift32(random);
        parcel_word *slot = &worker->slots[bench_below(random, (uint32_t)plan.slot_count)];
        parcel_word old = *slot;
        *slot = parcel_make(random);
        random = bench_xorshift32(random);
        if (random & 1) {
            struct worker *other = &workers[bench_below(random, (uint32_t)plan.thread_count)];
            uint32_t place = (random >> 1) % (uint32_t)plan.box_count;
            /* Release hands the mark over, acquire receives that of the other block. */
            old = atomic_exchange_explicit(&other->box[place], old, memory_order_acq_rel);
        }
        parcel_free(old);
    }
}

static void worker_empty(struct worker *worker)
{
    for (uint64_t i = 0; i < plan.slot_count; i++) {
        parcel_free(worker->slots[i]);
    }
    for (uint64_t i = 0; i < plan.box_count; i++) {
        parcel_free(atomic_load_explicit(&worker->box[i], memory_order_relaxed));
    }
    free(worker->slots);
    free(worker->box);
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"THREADS", "threads, 0: four for each CPU", &plan.thread_count, 0, MOST_THREADS},
        {"STEPS", "steps of each thread", &plan.step_count, 1, UINT32_MAX},
        {"SLOTS", "slots of each thread", &plan.slot_count, 1, 1u << 24},
        {"BOX", "places in each thread's box", &plan.box_count, 1, 65536},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Many more threads than CPUs, freeing each other's blocks.",
                         arguments, 5);
    if (plan.thread_count == 0) {
        plan.thread_count = 4 * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
        plan.thread_count = plan.thread_count < MOST_THREADS ? plan.thread_count : MOST_THREADS;
    }
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        workers[i].random = bench_seed_for(plan.seed, i);
        workers[i].slots = bench_table(plan.slot_count, sizeof(parcel_word));
        workers[i].box = bench_table(plan.box_count, sizeof(atomic_uint_fast64_t));
    }
    uint64_t elapsed_ns =
        bench_team_run((uint32_t)plan.thread_count, worker_work, workers, sizeof(*workers));
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        worker_empty(&workers[i]);
    }
    bench_report(plan.thread_count * plan.step_count, elapsed_ns);
    return 0;
}
