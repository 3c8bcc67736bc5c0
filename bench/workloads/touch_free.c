/* SPDX-License-Identifier: MIT */
/* bench/workloads/touch_free.c - allocate, touch, free: a buffer for a moment.
 *
 *   touch_free [BYTES] [ROUNDS] [FULL] [LIVE] [THREADS]
 *
 * Models temporary buffers: each of THREADS threads does ROUNDS rounds; one allocates a block of
 * BYTES bytes (64 KiB, 256 KiB and 2 MiB are telling), writes one byte in each page (FULL 0) or
 * all of it (FULL 1), and frees the one it took LIVE rounds before. One operation is one round;
 * all threads are counted together.
 *
 * Notes: page faults of the last nine tenths of the rounds, all threads together, and the same for
 * one round. An allocator that gives pages back between two rounds pays here.
 *
 * Checked before each free: one byte of each page.
 */
#include "bench.h"
#include "memory.h"
#include "team.h"

#define MOST_THREADS 1024
#define PAGE_BYTES 4096

struct worker {
    _Alignas(BENCH_CACHE_LINE_BYTES) unsigned char **live;
    uint64_t warm_faults; /* of the thread, when it had warmed up */
    uint64_t end_faults;
};

static struct {
    uint64_t block_bytes;
    uint64_t round_count;
    uint64_t full;
    uint64_t live_count;
    uint64_t thread_count;
} plan = {262144, 500000, 0, 1, 2};

static uint64_t thread_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_minflt;
}

static void block_touch(unsigned char *block, unsigned char key)
{
    if (plan.full) {
        memset(block, key, plan.block_bytes);
        return;
    }
    for (size_t offset = 0; offset < plan.block_bytes; offset += PAGE_BYTES) {
        block[offset] = key;
    }
}

static void block_free(unsigned char *block, unsigned char key)
{
    if (!block) {
        return;
    }
    for (size_t offset = 0; bench_checks() && offset < plan.block_bytes; offset += PAGE_BYTES) {
        if (block[offset] != key) {
            bench_fail("byte %zu is %u instead of %u", offset, block[offset], key);
        }
    }
    free(block);
}

static void worker_work(void *argument)
{
    struct worker *worker = argument;
    for (uint64_t round = 0; round < plan.round_count; round++) {
        if (round == plan.round_count / 10) {
            worker->warm_faults = thread_faults();
        }
        unsigned char *block = bench_take(plan.block_bytes);
        block_touch(block, (unsigned char)round);
        unsigned char **place = &worker->live[round % plan.live_count];
        block_free(*place, (unsigned char)(round - plan.live_count));
        *place = block;
    }
    worker->end_faults = thread_faults();
    for (uint64_t left = plan.live_count; left != 0; left--) {
        uint64_t round = plan.round_count - left;
        if (round < plan.round_count) {
            block_free(worker->live[round % plan.live_count], (unsigned char)round);
        }
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"BYTES", "bytes of a block", &plan.block_bytes, 1, (uint64_t)1 << 40},
        {"ROUNDS", "rounds of each thread", &plan.round_count, 1, UINT32_MAX},
        {"FULL", "1: write all of a block, 0: a byte of each page", &plan.full, 0, 1},
        {"LIVE", "blocks of a thread that live", &plan.live_count, 1, 65536},
        {"THREADS", "threads", &plan.thread_count, 1, MOST_THREADS},
    };
    bench_arguments_read(argc, argv, "Allocate, touch, free: a buffer for a moment.", arguments, 5);
    static struct worker workers[MOST_THREADS];
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        workers[i].live = bench_table(plan.live_count, sizeof(unsigned char *));
    }
    uint64_t elapsed_ns =
        bench_team_run((uint32_t)plan.thread_count, worker_work, workers, sizeof(*workers));
    uint64_t faults = 0;
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        faults += workers[i].end_faults - workers[i].warm_faults;
        free(workers[i].live);
    }
    uint64_t round_count = plan.thread_count * plan.round_count;
    bench_note("warm_faults: %" PRIu64 " faults", faults);
    bench_note("warm_faults_per_round: %.4f faults", (double)faults / (double)round_count / 0.9);
    bench_report(round_count, elapsed_ns);
    return 0;
}
