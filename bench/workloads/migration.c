/* SPDX-License-Identifier: MIT */
/* bench/workloads/migration.c - blocks that move between many short-lived threads.
 *
 *   migration [THREADS] [GENERATIONS] [STEPS] [SLOTS] [MIN] [MAX] [SEED]
 *
 * Models a pool of short jobs around shared state: THREADS lines of threads, each line GENERATIONS
 * threads one after another, each thread STEPS steps on average (half to one and a half of it, at
 * random). A step allocates a block of MIN <= bytes < MAX, exchanges it for the one in a random
 * slot of a table that all share, and frees what it got, which any thread, alive or ended, may
 * have allocated. Nine steps of ten go to the first tenth of the SLOTS, so a few blocks live long.
 * One operation is one step; all threads are counted together.
 *
 * Checked at each free, and for the blocks that are left: both ends of the block.
 */
#include "bench.h"
#include "team.h"

#include <stdatomic.h>

#define MOST_THREADS 1024

struct line {
    _Alignas(BENCH_CACHE_LINE_BYTES) uint32_t random;
    uint64_t step_count;
};

static struct {
    uint64_t thread_count;
    uint64_t generation_count;
    uint64_t step_count;
    uint64_t slot_count;
    uint64_t min_bytes;
    uint64_t max_bytes;
    uint64_t seed;
} plan = {8, 100, 5000, 20000, 16, 1024, 42};

static _Atomic(void *) *slots;

static uint32_t slot_choose(uint32_t random)
{
    uint32_t hot_count = (uint32_t)(plan.slot_count + 9) / 10;
    bool hot = bench_below(random * 0x9E3779B1u, 10) != 0;
    return bench_below(random, hot ? hot_count : (uint32_t)plan.slot_count);
}

/* One short-lived thread. */
static void *thread_main(void *argument)
{
    struct line *line = argument;
    uint32_t random = bench_xorshift32(line->random);
    uint64_t left = plan.step_count / 2 + bench_below(random, (uint32_t)plan.step_count) + 1;
    line->step_count += left;
    for (; left != 0; left--) {
        random = bench_xorshift32(random);
        size_t size_bytes =
            plan.min_bytes + bench_below(random, (uint32_t)(plan.max_bytes - plan.min_bytes));
        void *block = bench_take(size_bytes);
        bench_stamp(block, size_bytes, random);
        random = bench_xorshift32(random);
        /* Release hands the stamp over, acquire receives that of the other block. */
        void *old =
            atomic_exchange_explicit(&slots[slot_choose(random)], block, memory_order_acq_rel);
        if (old) {
            bench_stamp_check(old);
            free(old);
        }
    }
    line->random = random;
    return NULL;
}

static void line_work(void *argument)
{
    for (uint64_t left = plan.generation_count; left != 0; left--) {
        pthread_t thread;
        bench_thread_start(&thread, thread_main, argument);
        pthread_join(thread, NULL);
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"THREADS", "threads at a time", &plan.thread_count, 1, MOST_THREADS},
        {"GENERATIONS", "threads one after another", &plan.generation_count, 1, UINT32_MAX},
        {"STEPS", "steps of a thread on average", &plan.step_count, 1, UINT32_MAX},
        {"SLOTS", "blocks that live", &plan.slot_count, 1, 1u << 30},
        {"MIN", "least bytes of a block", &plan.min_bytes, 16, UINT32_MAX},
        {"MAX", "a block has fewer bytes than this", &plan.max_bytes, 17, UINT32_MAX},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Blocks that move between many short-lived threads.",
                         arguments, 7);
    bench_range_check(plan.min_bytes, plan.max_bytes);

    slots = bench_table(plan.slot_count, sizeof(*slots));
    static struct line lines[MOST_THREADS];
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        lines[i].random = bench_seed_for(plan.seed, i);
    }
    uint64_t elapsed_ns =
        bench_team_run((uint32_t)plan.thread_count, line_work, lines, sizeof(*lines));
    uint64_t step_count = 0;
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        step_count += lines[i].step_count;
    }
    for (uint64_t i = 0; i < plan.slot_count; i++) {
        void *block = atomic_load_explicit(&slots[i], memory_order_relaxed);
        if (block) {
            bench_stamp_check(block);
            free(block);
        }
    }
    bench_report(step_count, elapsed_ns);
    return 0;
}
