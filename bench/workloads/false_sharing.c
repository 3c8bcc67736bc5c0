/* SPDX-License-Identifier: MIT */
/* bench/workloads/false_sharing.c - does an allocator give one cache line to two threads?
 *
 *   false_sharing [MODE] [THREADS] [BYTES] [ROUNDS] [WRITES]
 *
 * Models counters and small records of worker threads. MODE 0, active: each of THREADS threads
 * allocates a block of BYTES bytes, adds WRITES times to its bytes in turn and frees it, ROUNDS
 * times; an allocator that carves one cache line for several threads makes them slow. MODE 1,
 * passive: the main thread allocates the first block of each thread, one after another, so they
 * may well share lines; an allocator that gives a thread's freed block to it again, although
 * another thread owns it, keeps them shared. One operation is one write; all threads are counted
 * together.
 *
 * Checked after each round: the counts in the block; a first block: the mark it came with.
 */
#include "bench.h"
#include "team.h"

#define MOST_THREADS 1024

struct worker {
    _Alignas(BENCH_CACHE_LINE_BYTES) unsigned char *block;
};

static struct {
    uint64_t mode;
    uint64_t thread_count;
    uint64_t block_bytes;
    uint64_t round_count;
    uint64_t write_count;
} plan = {0, 2, 8, 100000, 5000};

/* Volatile, or the compiler would write once. */
static void block_write(volatile unsigned char *block)
{
    for (uint64_t i = 0; i < plan.block_bytes; i++) {
        block[i] = 0;
    }
    uint64_t place = 0;
    for (uint64_t left = plan.write_count; left != 0; left--) {
        block[place]++;
        place = place + 1 == plan.block_bytes ? 0 : place + 1;
    }
}

static void block_check(const unsigned char *block)
{
    if (!bench_checks()) {
        return;
    }
    for (uint64_t i = 0; i < plan.block_bytes; i++) {
        uint64_t count = plan.write_count / plan.block_bytes;
        unsigned char expected = (unsigned char)(count + (i < plan.write_count % plan.block_bytes));
        if (block[i] != expected) {
            bench_fail("byte %" PRIu64 " counted %u instead of %u", i, block[i], expected);
        }
    }
}

static void worker_work(void *argument)
{
    struct worker *worker = argument;
    if (worker->block) {
        bench_mark_check(worker->block, plan.block_bytes, (uintptr_t)worker->block);
    }
    for (uint64_t left = plan.round_count; left != 0; left--) {
        unsigned char *block = worker->block ? worker->block : bench_take(plan.block_bytes);
        worker->block = NULL;
        block_write(block);
        block_check(block);
        free(block);
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"MODE", "0: active, 1: passive", &plan.mode, 0, 1},
        {"THREADS", "threads", &plan.thread_count, 1, MOST_THREADS},
        {"BYTES", "bytes of a block", &plan.block_bytes, 1, 4096},
        {"ROUNDS", "blocks of each thread", &plan.round_count, 1, UINT32_MAX},
        {"WRITES", "writes to a block", &plan.write_count, 1, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Does an allocator give one cache line to two threads?",
                         arguments, 5);
    static struct worker workers[MOST_THREADS];
    for (uint32_t i = 0; plan.mode == 1 && i < plan.thread_count; i++) {
        workers[i].block = bench_take(plan.block_bytes);
        bench_mark(workers[i].block, plan.block_bytes, (uintptr_t)workers[i].block);
    }
    uint64_t elapsed_ns =
        bench_team_run((uint32_t)plan.thread_count, worker_work, workers, sizeof(*workers));
    bench_report(plan.thread_count * plan.round_count * plan.write_count, elapsed_ns);
    return 0;
}
