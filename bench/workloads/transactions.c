/* SPDX-License-Identifier: MIT */
/* bench/workloads/transactions.c - many small transactions in each thread, each freed at once.
 *
 *   transactions [THREADS] [TRANSACTIONS] [MOST_BLOCKS] [KEPT] [SEED]
 *
 * Models a server that builds a tree of small objects for each request and drops it whole: each
 * of THREADS threads does TRANSACTIONS transactions of 1 to MOST_BLOCKS blocks of 8 to 511 bytes
 * (each doubling as likely as each other) and frees them in the order of their allocation. One
 * transaction of 64 stays alive until KEPT others of its kind have come after it. One operation is
 * one block, its malloc and its free included; all threads are counted together.
 *
 * Checked at each free: both ends of the block.
 */
#include "bench.h"
#include "team.h"

#define MOST_THREADS 1024
#define LEAST_SHIFT 3
#define MOST_SHIFT 9
#define KEPT_OF 64

struct transaction {
    void **blocks;
    uint64_t number; /* gives the sizes again */
    uint32_t block_count;
};

struct worker {
    _Alignas(BENCH_CACHE_LINE_BYTES) struct transaction *kept; /* the last one is in the making */
    uint64_t index;
    uint64_t block_count;
};

static struct {
    uint64_t thread_count;
    uint64_t transaction_count;
    uint64_t most_blocks;
    uint64_t kept_count;
    uint64_t seed;
} plan = {2, 300000, 200, 100, 42};

static uint64_t random_of(const struct transaction *transaction, uint32_t index)
{
    return bench_mix64(transaction->number + index);
}

static void transaction_do(struct transaction *transaction, uint64_t number)
{
    transaction->number = number;
    transaction->block_count =
        1 + bench_below((uint32_t)bench_mix64(~number), (uint32_t)plan.most_blocks);
    for (uint32_t i = 0; i < transaction->block_count; i++) {
        uint64_t random = random_of(transaction, i);
        size_t size_bytes = bench_size_log(random, LEAST_SHIFT, MOST_SHIFT);
        transaction->blocks[i] = bench_take(size_bytes);
        bench_mark(transaction->blocks[i], size_bytes, random);
    }
}

static void transaction_undo(struct transaction *transaction)
{
    for (uint32_t i = 0; i < transaction->block_count; i++) {
        uint64_t random = random_of(transaction, i);
        bench_mark_check(transaction->blocks[i], bench_size_log(random, LEAST_SHIFT, MOST_SHIFT),
                         random);
        free(transaction->blocks[i]);
    }
    transaction->block_count = 0;
}

static void worker_work(void *argument)
{
    struct worker *worker = argument;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < plan.transaction_count; i++) {
        struct transaction *transaction = &worker->kept[plan.kept_count];
        if (i % KEPT_OF == 0) {
            transaction = &worker->kept[kept++ % plan.kept_count];
            transaction_undo(transaction);
        }
        uint64_t number = ((plan.seed << 10 | worker->index) << 32 | i) * (plan.most_blocks + 1);
        transaction_do(transaction, number);
        worker->block_count += transaction->block_count;
        if (i % KEPT_OF != 0) {
            transaction_undo(transaction);
        }
    }
    for (uint64_t i = 0; i < plan.kept_count; i++) {
        transaction_undo(&worker->kept[i]);
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"THREADS", "threads", &plan.thread_count, 1, MOST_THREADS},
        {"TRANSACTIONS", "transactions of each thread", &plan.transaction_count, 1, UINT32_MAX},
        {"MOST_BLOCKS", "most blocks of a transaction", &plan.most_blocks, 1, 1u << 20},
        {"KEPT", "transactions of each thread that stay", &plan.kept_count, 1, 65536},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Many small transactions in each thread, freed at once.",
                         arguments, 5);
    static struct worker workers[MOST_THREADS];
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        workers[i].index = i;
        workers[i].kept = bench_table(plan.kept_count + 1, sizeof(struct transaction));
        for (uint64_t kept = 0; kept <= plan.kept_count; kept++) {
            workers[i].kept[kept].blocks = bench_table(plan.most_blocks, sizeof(void *));
        }
    }
    uint64_t elapsed_ns =
        bench_team_run((uint32_t)plan.thread_count, worker_work, workers, sizeof(*workers));
    uint64_t block_count = 0;
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        block_count += workers[i].block_count;
    }
    bench_report(block_count, elapsed_ns);
    return 0;
}
