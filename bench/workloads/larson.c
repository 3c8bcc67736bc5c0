/* SPDX-License-Identifier: MIT */
/* bench/workloads/larson.c - a server whose threads come and go and hand on what they allocated.
 *
 *   larson SECONDS MIN MAX BLOCKS ROUNDS SEED THREADS
 *
 * After Larson and Krishnan, "Memory allocation for long-running server applications" (1998).
 * THREADS lines of succession run at once. Each owns an array of BLOCKS blocks; a step frees a
 * random victim, allocates MIN <= bytes < MAX in its place and touches its first two bytes. After
 * BLOCKS x ROUNDS steps a thread starts a successor, which inherits the array, and ends: so most
 * blocks are freed by another thread than the one that allocated them. After SECONDS all stop.
 * One operation is one step, that is one free and one malloc; all threads are counted together.
 *
 * Checked after the clock has stopped: the first two bytes of each block that is still there.
 */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>

/* What one line of succession hands from thread to thread; read and written by one at a time. */
struct line {
    _Alignas(BENCH_CACHE_LINE_BYTES) unsigned char **blocks;
    uint64_t step_count;
    uint32_t random;
    bool filled;
};

static struct {
    uint32_t min_bytes;
    uint32_t range_bytes;
    uint32_t block_count;
    uint64_t steps_per_thread;
    pthread_barrier_t filled;
} plan;

static atomic_bool stopping;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t reached_zero;
    uint64_t count;
} running = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void thread_start(struct line *line);

/* A fresh block of random size, marked with its place in the array. */
static inline unsigned char *block_take(uint32_t random, uint32_t index)
{
    size_t block_bytes = plan.min_bytes + bench_below(random, plan.range_bytes);
    unsigned char *block = malloc(block_bytes);
    if (!block) {
        bench_fail("malloc(%zu) returned NULL", block_bytes);
    }
    block[0] = (unsigned char)index;
    block[1] = (unsigned char)(index >> 8);
    return block;
}

/* The first thread of a line allocates all its blocks before the clock starts. */
static void line_fill(struct line *line)
{
    for (uint32_t index = 0; index < plan.block_count; index++) {
        line->random = bench_xorshift32(line->random);
        line->blocks[index] = block_take(line->random, index);
    }
    line->filled = true;
    pthread_barrier_wait(&plan.filled);
}

/* Replaces random blocks until the thread's steps are done or the time is up. */
static void line_replace_blocks(struct line *line)
{
    unsigned char **blocks = line->blocks;
    uint32_t random = line->random;
    uint64_t done = 0;
    while (done < plan.steps_per_thread && !atomic_load_explicit(&stopping, memory_order_relaxed)) {
        random = bench_xorshift32(random);
        uint32_t index = bench_below(random, plan.block_count);
        free(blocks[index]);
        random = bench_xorshift32(random);
        blocks[index] = block_take(random, index);
        done++;
    }
    line->random = random;
    line->step_count += done;
}

static void *thread_main(void *argument)
{
    struct line *line = argument;
    if (!line->filled) {
        line_fill(line);
    }
    line_replace_blocks(line);
    if (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        thread_start(line);
        return NULL;
    }
    pthread_mutex_lock(&running.mutex);
    if (--running.count == 0) {
        pthread_cond_signal(&running.reached_zero);
    }
    pthread_mutex_unlock(&running.mutex);
    return NULL;
}

static void thread_start(struct line *line)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, thread_main, line);
    if (error == 0) {
        error = pthread_detach(thread);
    }
    if (error != 0) {
        bench_fail("cannot start a thread: %s", strerror(error));
    }
}

/* Lets the lines run for `seconds`; returns the time from the first step to the stop, in
 * nanoseconds. */
static uint64_t lines_run(struct line *lines, uint32_t line_count, uint64_t seconds)
{
    running.count = line_count;
    pthread_barrier_init(&plan.filled, NULL, line_count + 1);
    for (uint32_t i = 0; i < line_count; i++) {
        thread_start(&lines[i]);
    }
    pthread_barrier_wait(&plan.filled);

    uint64_t start_ns = bench_now_ns();
    struct timespec left = {.tv_sec = (time_t)seconds};
    while (nanosleep(&left, &left) != 0) {
    }
    atomic_store_explicit(&stopping, true, memory_order_relaxed);
    uint64_t elapsed_ns = bench_now_ns() - start_ns;

    pthread_mutex_lock(&running.mutex);
    while (running.count != 0) {
        pthread_cond_wait(&running.reached_zero, &running.mutex);
    }
    pthread_mutex_unlock(&running.mutex);
    return elapsed_ns;
}

/* Frees the blocks that are left, each after its mark was checked. */
static void line_empty(struct line *line)
{
    bool verifies = bench_verifies();
    for (uint32_t index = 0; index < plan.block_count; index++) {
        unsigned char *block = line->blocks[index];
        uint32_t mark = block[0] | (uint32_t)block[1] << 8;
        if (verifies && mark != (index & 0xFFFF)) {
            bench_fail("block %u holds %u instead of %u", index, mark, index & 0xFFFF);
        }
        free(block);
    }
    free(line->blocks);
}

int main(int argc, char **argv)
{
    uint64_t seconds = 5;
    uint64_t min_bytes = 8;
    uint64_t max_bytes = 1024;
    uint64_t block_count = 10000;
    uint64_t round_count = 100;
    uint64_t seed = 12345;
    uint64_t thread_count = 4;
    const struct bench_argument arguments[] = {
        {"SECONDS", "how long to run", &seconds, 1, 86400},
        {"MIN", "least bytes of a block", &min_bytes, 2, UINT32_MAX},
        {"MAX", "a block has fewer bytes than this", &max_bytes, 3, UINT32_MAX},
        {"BLOCKS", "blocks of each thread", &block_count, 1, UINT32_MAX},
        {"ROUNDS", "a thread replaces BLOCKS x ROUNDS blocks", &round_count, 1, UINT32_MAX},
        {"SEED", "start of the random numbers", &seed, 0, UINT32_MAX},
        {"THREADS", "threads at a time", &thread_count, 1, 4096},
    };
    bench_arguments_read(argc, argv, "A server whose threads come and go and inherit blocks.",
                         arguments, 7);
    bench_range_check(min_bytes, max_bytes);

    plan.min_bytes = (uint32_t)min_bytes;
    plan.range_bytes = (uint32_t)(max_bytes - min_bytes);
    plan.block_count = (uint32_t)block_count;
    plan.steps_per_thread = block_count * round_count;
    static struct line lines[4096];
    for (uint32_t i = 0; i < thread_count; i++) {
        lines[i].blocks = bench_table(block_count, sizeof(*lines[i].blocks));
        lines[i].random = bench_seed_for(seed, i);
    }
    uint64_t elapsed_ns = lines_run(lines, (uint32_t)thread_count, seconds);

    uint64_t step_count = 0;
    for (uint32_t i = 0; i < thread_count; i++) {
        step_count += lines[i].step_count;
        line_empty(&lines[i]);
    }
    bench_report(step_count, elapsed_ns);
    return 0;
}
