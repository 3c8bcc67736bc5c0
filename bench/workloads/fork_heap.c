/* SPDX-License-Identifier: MIT */
/* bench/workloads/fork_heap.c - fork with much memory live and threads at work.
 *
 *   fork_heap [MIB] [FORKS] [THREADS] [BYTES] [SEED]
 *
 * Models a store that forks to save itself: MIB MiB of blocks of BYTES bytes are live while THREADS
 * other threads replace small blocks; FORKS times the process forks, the child checks 1,000 random
 * blocks, allocates and frees as many, and ends. One operation is one fork, to the child's end.
 *
 * Notes: milliseconds in fork itself (median and longest) and to the end of the child; millions of
 * replacements that the threads did meanwhile in a second.
 *
 * Checked by each child and at the end: the marks of blocks.
 */
#include "bench.h"
#include "histogram.h"
#include "memory.h"
#include "team.h"

#include <stdatomic.h>
#include <sys/wait.h>

#define MOST_THREADS 64
#define CHILD_BLOCKS 1000
#define SLOT_COUNT 1000

struct worker {
    _Alignas(BENCH_CACHE_LINE_BYTES) uint32_t random;
    uint64_t step_count;
    pthread_t thread;
};

static struct {
    uint64_t mib_count;
    uint64_t fork_count;
    uint64_t thread_count;
    uint64_t block_bytes;
    uint64_t seed;
} plan = {1024, 8, 2, 256, 42};

static atomic_bool stopping;
static unsigned char **blocks;
static uint64_t block_count;

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    void *slots[SLOT_COUNT] = {0};
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        worker->random = bench_xorshift32(worker->random);
        void **slot = &slots[bench_below(worker->random, SLOT_COUNT)];
        if (*slot) {
            bench_stamp_check(*slot);
        }
        free(*slot);
        size_t size_bytes = 16 + (worker->random & 255);
        *slot = bench_take(size_bytes);
        bench_stamp(*slot, size_bytes, worker->random);
        worker->step_count++;
    }
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        free(slots[i]);
    }
    return NULL;
}

static __attribute__((noreturn)) void child_main(uint32_t random)
{
    for (uint32_t i = 0; i < CHILD_BLOCKS; i++) {
        random = bench_xorshift32(random);
        uint32_t index = bench_below(random, (uint32_t)block_count);
        bench_mark_check(blocks[index], plan.block_bytes, index);
        void *block = bench_take(16 + (random & 1023));
        bench_stamp(block, 16 + (random & 1023), random);
        bench_stamp_check(block);
        free(block);
    }
    _exit(0);
}

/* Forks once; returns nanoseconds inside fork. */
static uint64_t fork_once(uint32_t random)
{
    int status;
    uint64_t start_ns = bench_now_ns();
    pid_t child = fork();
    uint64_t inside_ns = bench_now_ns() - start_ns;
    if (child == 0) {
        child_main(random);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        bench_fail("cannot fork: %s", strerror(errno));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
        _exit(1); /* it has said why */
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bench_fail("a child ended with status %d instead of 0", status);
    }
    return inside_ns;
}

static void blocks_fill(void)
{
    block_count = (plan.mib_count << 20) / plan.block_bytes;
    blocks = bench_map(block_count, sizeof(*blocks));
    for (uint64_t i = 0; i < block_count; i++) {
        blocks[i] = bench_take(plan.block_bytes);
        memset(blocks[i], (int)i, plan.block_bytes);
        bench_mark(blocks[i], plan.block_bytes, i);
    }
}

static uint64_t workers_stop(struct worker *workers)
{
    uint64_t step_count = 0;
    atomic_store_explicit(&stopping, true, memory_order_relaxed);
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        pthread_join(workers[i].thread, NULL);
        step_count += workers[i].step_count;
    }
    return step_count;
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"MIB", "MiB of live blocks", &plan.mib_count, 1, 1u << 18},
        {"FORKS", "forks", &plan.fork_count, 1, UINT32_MAX},
        {"THREADS", "threads at work beside", &plan.thread_count, 0, MOST_THREADS},
        {"BYTES", "bytes of a live block", &plan.block_bytes, 16, 1u << 20},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Fork with much memory live and threads at work.", arguments,
                         5);
    blocks_fill();
    static struct worker workers[MOST_THREADS];
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        workers[i].random = bench_seed_for(plan.seed, i);
        bench_thread_start(&workers[i].thread, worker_main, &workers[i]);
    }
    static struct histogram inside;
    uint64_t start_ns = bench_now_ns();
    for (uint64_t i = 0; i < plan.fork_count; i++) {
        histogram_add(&inside, fork_once(bench_seed_for(plan.seed, i + MOST_THREADS)));
    }
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    uint64_t step_count = workers_stop(workers);
    for (uint64_t i = 0; i < block_count; i++) {
        bench_mark_check(blocks[i], plan.block_bytes, i);
    }
    bench_note("fork_p50: %.4f ms", (double)histogram_quantile(&inside, 0.5) * 1e-6);
    bench_note("fork_max: %.4f ms", (double)inside.most * 1e-6);
    bench_note("to_end_of_child: %.4f ms", (double)elapsed_ns * 1e-6 / (double)plan.fork_count);
    bench_note("beside: %.2f M/s", (double)step_count / (double)elapsed_ns * 1e3);
    bench_report(plan.fork_count, elapsed_ns);
    return 0;
}
