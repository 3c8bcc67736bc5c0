/* SPDX-License-Identifier: MIT */
/* bench/workloads/pool.c - a pool of threads that take turns.
 *
 *   pool [THREADS] [AT_ONCE] [REQUESTS] [BLOCKS] [SEED]
 *
 * Models servers with many more threads than work: each request goes to one of THREADS threads
 * that sleep, drawn at random, AT_ONCE of them at a time. It takes between half and one and a half
 * times BLOCKS blocks of 16 to 1024 bytes and frees all of them; the thread sleeps again. One
 * operation is one block.
 *
 * Notes: processor time for each block, threads of the allocator's own included, and resident
 * memory at the end. Little is live at any time, so nearly all of that is what the threads keep.
 *
 * Checked at each free: both ends of the block.
 */
#include "bench.h"
#include "memory.h"
#include "team.h"

#include <semaphore.h>

#define LEAST_BYTES 16
#define MOST_BYTES 1024
#define MOST_BLOCKS 5000

static struct {
    uint64_t thread_count;
    uint64_t at_once;
    uint64_t request_count;
    uint64_t block_count;
    uint64_t seed;
} plan = {1000, 2, 10000, 500, 42};

struct worker {
    sem_t wake;
    uint32_t random;
};

/* A block and its size. */
struct note {
    void *block;
    size_t bytes;
};

static struct {
    pthread_mutex_t lock;
    uint64_t block_count;  /* of all requests that are done */
    uint64_t worker_count; /* of `asleep` */
    struct worker **asleep;
    sem_t may_begin; /* a request may: fewer than AT_ONCE are under way */
} office = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_closing;

static uint64_t request_handle(struct worker *worker)
{
    struct note notes[MOST_BLOCKS * 3 / 2];
    worker->random = bench_xorshift32(worker->random);
    uint64_t count = plan.block_count / 2 + bench_below(worker->random, (uint32_t)plan.block_count);
    for (uint64_t i = 0; i < count; i++) {
        worker->random = bench_xorshift32(worker->random);
        size_t size_bytes = LEAST_BYTES + bench_below(worker->random, MOST_BYTES - LEAST_BYTES + 1);
        notes[i] = (struct note){bench_take(size_bytes), size_bytes};
        bench_mark(notes[i].block, size_bytes, (uintptr_t)notes[i].block);
    }
    for (uint64_t i = 0; i < count; i++) {
        bench_mark_check(notes[i].block, notes[i].bytes, (uintptr_t)notes[i].block);
        free(notes[i].block);
    }
    return count;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    for (;;) {
        sem_wait(&worker->wake);
        if (is_closing) {
            return NULL;
        }
        uint64_t count = request_handle(worker);
        pthread_mutex_lock(&office.lock);
        office.block_count += count;
        office.asleep[office.worker_count++] = worker;
        pthread_mutex_unlock(&office.lock);
        sem_post(&office.may_begin);
    }
}

static void workers_hire(struct worker *workers, pthread_t *threads)
{
    for (uint64_t i = 0; i < plan.thread_count; i++) {
        workers[i].random = bench_seed_for(plan.seed, i + 1);
        sem_init(&workers[i].wake, 0, 0);
        office.asleep[office.worker_count++] = &workers[i];
    }
    bench_crowd_start(threads, plan.thread_count, worker_main, workers, sizeof(*workers));
}

static void workers_dismiss(struct worker *workers, const pthread_t *threads)
{
    is_closing = true;
    for (uint64_t i = 0; i < plan.thread_count; i++) {
        sem_post(&workers[i].wake);
        pthread_join(threads[i], NULL);
    }
}

static struct worker *worker_draw(uint32_t random)
{
    pthread_mutex_lock(&office.lock);
    uint64_t at = bench_below(random, (uint32_t)office.worker_count);
    struct worker *worker = office.asleep[at];
    office.asleep[at] = office.asleep[--office.worker_count];
    pthread_mutex_unlock(&office.lock);
    return worker;
}

/* Returns when all requests are done. */
static void requests_serve(void)
{
    uint32_t random = bench_seed_for(plan.seed, 0);
    sem_init(&office.may_begin, 0, (unsigned)plan.at_once);
    for (uint64_t i = 0; i < plan.request_count; i++) {
        sem_wait(&office.may_begin);
        random = bench_xorshift32(random);
        sem_post(&worker_draw(random)->wake);
    }
    for (uint64_t i = 0; i < plan.at_once; i++) {
        sem_wait(&office.may_begin);
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"THREADS", "threads", &plan.thread_count, 1, 30000},
        {"AT_ONCE", "requests under way at a time", &plan.at_once, 1, 1000},
        {"REQUESTS", "requests", &plan.request_count, 1, 1000000000},
        {"BLOCKS", "blocks of a request, on average", &plan.block_count, 1, MOST_BLOCKS},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "A pool of threads that take turns.", arguments, 5);
    if (plan.at_once > plan.thread_count) {
        plan.at_once = plan.thread_count;
    }
    struct worker *workers = bench_map(plan.thread_count, sizeof(*workers));
    office.asleep = bench_map(plan.thread_count, sizeof(struct worker *));
    pthread_t *threads = bench_map(plan.thread_count, sizeof(*threads));
    workers_hire(workers, threads);
    uint64_t cpu_ns = bench_cpu_ns();
    uint64_t start_ns = bench_now_ns();
    requests_serve();
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    cpu_ns = bench_cpu_ns() - cpu_ns;
    bench_note("cpu_per_block: %.2f ns", (double)cpu_ns / (double)office.block_count);
    bench_note("rss: %.2f MiB", (double)bench_rss_bytes() / BENCH_MIB);
    workers_dismiss(workers, threads);
    bench_report(office.block_count, elapsed_ns);
    return 0;
}
