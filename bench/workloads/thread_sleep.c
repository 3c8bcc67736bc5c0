/* SPDX-License-Identifier: MIT */
/* bench/workloads/thread_sleep.c - many threads that have worked and now sleep.
 *
 *   thread_sleep [THREADS] [SIZES] [BLOCKS] [IDLE_MS]
 *
 * Models thread pools: THREADS threads; each allocates BLOCKS blocks of each of SIZES sizes (16
 * bytes and each a quarter larger than the one before), frees all of them, waits for all others,
 * and sleeps for IDLE_MS milliseconds. One operation is one block; the time is that of the work.
 *
 * Notes: resident memory for each thread, beyond what the threads themselves take (measured with
 * as many threads that allocate nothing), after the work and after the sleep.
 *
 * Checked at each free: both ends of the block.
 */
#include "bench.h"
#include "memory.h"
#include "team.h"

#define MOST_SIZES 60

static struct {
    uint64_t thread_count;
    uint64_t size_count;
    uint64_t block_count;
    uint64_t idle_ms;
} plan = {1000, 20, 100, 500};

static pthread_barrier_t worked;
static pthread_barrier_t leaving;

static void sizes_use(size_t size_bytes)
{
    void *blocks[1024];
    for (uint64_t i = 0; i < plan.block_count; i++) {
        blocks[i] = bench_take(size_bytes);
        bench_mark(blocks[i], size_bytes, (uintptr_t)blocks[i]);
    }
    for (uint64_t i = 0; i < plan.block_count; i++) {
        bench_mark_check(blocks[i], size_bytes, (uintptr_t)blocks[i]);
        free(blocks[i]);
    }
}

/* Works if there is an argument. */
static void *thread_main(void *argument)
{
    size_t size_bytes = 16;
    for (uint64_t i = 0; argument && i < plan.size_count; i++) {
        sizes_use(size_bytes);
        size_bytes += size_bytes / 4;
    }
    pthread_barrier_wait(&worked);
    pthread_barrier_wait(&leaving);
    return NULL;
}

static void sleep_ms(uint64_t duration_ms)
{
    struct timespec left = {(time_t)(duration_ms / 1000), (long)(duration_ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

/* Resident bytes of all threads after the work and after the sleep; returns the time of work. */
static uint64_t threads_run(pthread_t *threads, void *argument, uint64_t rss_bytes[2])
{
    pthread_barrier_init(&worked, NULL, (unsigned)plan.thread_count + 1);
    pthread_barrier_init(&leaving, NULL, (unsigned)plan.thread_count + 1);
    uint64_t start_ns = bench_now_ns();
    bench_crowd_start(threads, plan.thread_count, thread_main, argument, 0);
    pthread_barrier_wait(&worked);
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    rss_bytes[0] = bench_rss_bytes();
    sleep_ms(argument ? plan.idle_ms : 0);
    rss_bytes[1] = bench_rss_bytes();
    pthread_barrier_wait(&leaving);
    for (uint64_t i = 0; i < plan.thread_count; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&worked);
    pthread_barrier_destroy(&leaving);
    return elapsed_ns;
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"THREADS", "threads", &plan.thread_count, 1, 30000},
        {"SIZES", "sizes that each uses", &plan.size_count, 1, MOST_SIZES},
        {"BLOCKS", "blocks of each size", &plan.block_count, 1, 1024},
        {"IDLE_MS", "milliseconds of sleep", &plan.idle_ms, 0, 600000},
    };
    bench_arguments_read(argc, argv, "Many threads that have worked and now sleep.", arguments, 4);
    pthread_t *threads = bench_map(plan.thread_count, sizeof(*threads));
    uint64_t idle_bytes[2];
    uint64_t used_bytes[2];
    threads_run(threads, NULL, idle_bytes);
    uint64_t elapsed_ns = threads_run(threads, &plan, used_bytes);
    static const char *const names[] = {"worked", "slept"};
    for (int i = 0; i < 2; i++) {
        bench_note("rss_per_thread_%s: %.2f KiB", names[i],
                   ((double)used_bytes[i] - (double)idle_bytes[0]) / 1024 /
                       (double)plan.thread_count);
    }
    bench_report(plan.thread_count * plan.size_count * plan.block_count, elapsed_ns);
    return 0;
}
