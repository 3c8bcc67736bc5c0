/* SPDX-License-Identifier: MIT */
/* bench/workloads/producer_consumer.c - threads that allocate for threads that free.
 *
 *   producer_consumer [PAIRS] [BYTES] [LOW] [HIGH] [BLOCKS] [BATCH] [SEED]
 *
 * Models a pipeline: PAIRS producers each hand BLOCKS blocks of BYTES bytes (0: mixed, 16 to
 * 2047, each doubling as likely as each other) in batches of BATCH through a bounded ring to a
 * consumer, which frees them. The depth of each ring swings between LOW and HIGH: on the way up a
 * consumer takes one batch for two given, on the way down a producer gives one for two taken.
 * One operation is one block handed over, its malloc and its free included.
 *
 * Notes: CPU time per block of all threads; what is live in the queues and what is resident (the
 * rings left out) when the first pair turns at HIGH the last time, and resident at LOW.
 *
 * Checked by the consumer: each block's mark is its number, and no number is missing.
 */
#include "bench.h"
#include "memory.h"
#include "team.h"

#include <stdatomic.h>

#define MOST_PAIRS 256

enum direction { GOING_UP, GOING_DOWN };

/* The mutex guards what follows it, but for the blocks between taken and given, which only the
 * consumer reads, and the free entries, which only the producer writes. */
struct queue {
    _Alignas(BENCH_CACHE_LINE_BYTES) pthread_mutex_t mutex;
    pthread_cond_t moved;
    enum direction direction;
    uint64_t given;
    uint64_t taken;
    uint64_t given_at_turn;
    uint64_t taken_at_turn;
    void **entries; /* block n is in entry n % capacity */
    uint32_t index;
    atomic_uint_fast64_t live_bytes;
};

/* An element is the producer of queue number / 2 or, if odd, its consumer. */
struct side {
    uint32_t number;
};

static struct {
    uint64_t pair_count;
    uint64_t block_bytes;
    uint64_t low_count;
    uint64_t high_count;
    uint64_t block_count;
    uint64_t batch_count;
    uint64_t seed;
    uint64_t capacity;
} plan = {1, 64, 1000, 1000000, 10000000, 256, 42, 0};

static struct {
    double live_mib;
    double rss_high_mib;
    double rss_low_mib;
} seen;

static struct queue queues[MOST_PAIRS];

static size_t size_of_block(const struct queue *queue, uint64_t number)
{
    if (plan.block_bytes != 0) {
        return plan.block_bytes;
    }
    return bench_size_log(bench_mix64(plan.seed + queue->index + (number << 8)), 4, 11);
}

/* The total contents of all queues, in MiB. */
static double live_mib(void)
{
    uint64_t live_bytes = 0;
    for (uint64_t i = 0; i < plan.pair_count; i++) {
        live_bytes += atomic_load_explicit(&queues[i].live_bytes, memory_order_relaxed);
    }
    return (double)live_bytes / BENCH_MIB;
}

static void queue_turn(struct queue *queue, enum direction direction)
{
    queue->direction = direction;
    queue->given_at_turn = queue->given;
    queue->taken_at_turn = queue->taken;
    if (queue->index == 0 && direction == GOING_DOWN) {
        seen.live_mib = live_mib();
        seen.rss_high_mib = bench_rss_mib();
    } else if (queue->index == 0) {
        seen.rss_low_mib = bench_rss_mib();
    }
}

/* The producer waits on the way down until two were taken for each that it gave. */
static bool producer_waits(const struct queue *queue)
{
    uint64_t depth = queue->given - queue->taken;
    return depth + plan.batch_count > plan.capacity ||
           (queue->direction == GOING_DOWN &&
            2 * (queue->given - queue->given_at_turn) > queue->taken - queue->taken_at_turn);
}

/* The consumer waits on the way up until two were given for each that it took. */
static bool consumer_waits(const struct queue *queue)
{
    if (queue->given == plan.block_count) {
        return false;
    }
    return queue->given == queue->taken ||
           (queue->direction == GOING_UP &&
            2 * (queue->taken - queue->taken_at_turn) >= queue->given - queue->given_at_turn);
}

static void producer_work(struct queue *queue)
{
    for (uint64_t first = 0; first < plan.block_count;) {
        pthread_mutex_lock(&queue->mutex);
        while (producer_waits(queue)) {
            pthread_cond_wait(&queue->moved, &queue->mutex);
        }
        pthread_mutex_unlock(&queue->mutex);
        uint64_t left = plan.block_count - first;
        uint64_t end = first + (left < plan.batch_count ? left : plan.batch_count);
        uint64_t sum_bytes = 0;
        for (uint64_t number = first; number < end; number++) {
            size_t size_bytes = size_of_block(queue, number);
            void *block = bench_take(size_bytes);
            bench_mark(block, size_bytes, number);
            queue->entries[number % plan.capacity] = block;
            sum_bytes += size_bytes;
        }
        first = end;
        atomic_fetch_add_explicit(&queue->live_bytes, sum_bytes, memory_order_relaxed);
        pthread_mutex_lock(&queue->mutex);
        queue->given = end;
        if (queue->direction == GOING_UP && queue->given - queue->taken >= plan.high_count) {
            queue_turn(queue, GOING_DOWN);
        }
        pthread_cond_signal(&queue->moved);
        pthread_mutex_unlock(&queue->mutex);
    }
}

static void consumer_work(struct queue *queue)
{
    for (uint64_t first = 0; first < plan.block_count;) {
        pthread_mutex_lock(&queue->mutex);
        while (consumer_waits(queue)) {
            pthread_cond_wait(&queue->moved, &queue->mutex);
        }
        uint64_t left = queue->given - first;
        pthread_mutex_unlock(&queue->mutex);
        uint64_t end = first + (left < plan.batch_count ? left : plan.batch_count);
        uint64_t sum_bytes = 0;
        for (uint64_t number = first; number < end; number++) {
            size_t size_bytes = size_of_block(queue, number);
            void *block = queue->entries[number % plan.capacity];
            bench_mark_check(block, size_bytes, number);
            free(block);
            sum_bytes += size_bytes;
        }
        first = end;
        atomic_fetch_sub_explicit(&queue->live_bytes, sum_bytes, memory_order_relaxed);
        pthread_mutex_lock(&queue->mutex);
        queue->taken = end;
        if (queue->direction == GOING_DOWN && queue->given - queue->taken <= plan.low_count) {
            queue_turn(queue, GOING_UP);
        }
        pthread_cond_signal(&queue->moved);
        pthread_mutex_unlock(&queue->mutex);
    }
}

static void side_work(void *argument)
{
    struct side *side = argument;
    struct queue *queue = &queues[side->number / 2];
    if (side->number % 2 == 0) {
        producer_work(queue);
    } else {
        consumer_work(queue);
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"PAIRS", "producers, and as many consumers", &plan.pair_count, 1, MOST_PAIRS},
        {"BYTES", "bytes of a block, 0: mixed", &plan.block_bytes, 0, UINT32_MAX},
        {"LOW", "blocks in a queue where it turns upwards", &plan.low_count, 1, UINT32_MAX},
        {"HIGH", "blocks in a queue where it turns downwards", &plan.high_count, 2, UINT32_MAX},
        {"BLOCKS", "blocks of each producer", &plan.block_count, 1, UINT32_MAX},
        {"BATCH", "blocks handed over at a time", &plan.batch_count, 1, 65536},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Threads that allocate for threads that free.", arguments, 7);
    bench_order_check("LOW", plan.low_count, "HIGH", plan.high_count);

    /* Room for a batch on its way beyond either turning point. */
    plan.capacity = plan.high_count + 2 * plan.batch_count;
    struct side sides[2 * MOST_PAIRS];
    for (uint32_t i = 0; i < plan.pair_count; i++) {
        pthread_mutex_init(&queues[i].mutex, NULL);
        pthread_cond_init(&queues[i].moved, NULL);
        queues[i].entries = bench_map(plan.capacity, sizeof(void *));
        queues[i].index = i;
        sides[2 * i].number = 2 * i;
        sides[2 * i + 1].number = 2 * i + 1;
    }
    uint64_t cpu_ns = bench_cpu_ns();
    uint64_t elapsed_ns =
        bench_team_run((uint32_t)plan.pair_count * 2, side_work, sides, sizeof(*sides));
    cpu_ns = bench_cpu_ns() - cpu_ns;
    uint64_t block_count = plan.pair_count * plan.block_count;
    bench_note("cpu_per_block: %.2f ns", (double)cpu_ns / (double)block_count);
    bench_note("live_at_high: %.2f MiB", seen.live_mib);
    bench_note("rss_at_high: %.2f MiB", seen.rss_high_mib);
    bench_note("rss_at_low: %.2f MiB", seen.rss_low_mib);
    bench_report(block_count, elapsed_ns);
    return 0;
}
