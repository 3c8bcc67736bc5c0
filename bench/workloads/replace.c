/* SPDX-License-Identifier: MIT */
/* bench/workloads/replace.c - a set of blocks of which one after the other is replaced.
 *
 *   replace [THREADS] [OPERATIONS] [SLOTS] [MIN] [MAX] [ORDER] [ALIGNMENT] [ZERO] [SEED]
 *
 * Models whatever has a stable number of buffers: each of THREADS threads has SLOTS slots, all
 * empty at first, and does OPERATIONS operations: one frees the block of a slot and puts a block of
 * MIN <= bytes < MAX in its place, of which it writes the ends. ORDER 0 takes the slots at random,
 * 1 in turn, so that the oldest block goes. With an ALIGNMENT other than 0 the blocks are from
 * posix_memalign, with ZERO 1 from calloc. One operation is one replacement; all threads are
 * counted together.
 *
 * Checked at each free: both ends of the block; with an ALIGNMENT, that it has it; with ZERO, that
 * both ends of a new block are zero.
 */
#include "bench.h"
#include "team.h"

#define MOST_THREADS 1024

struct slot {
    void *block;
    size_t bytes;
};

struct worker {
    _Alignas(BENCH_CACHE_LINE_BYTES) struct slot *slots;
    uint32_t random;
};

static struct {
    uint64_t thread_count;
    uint64_t operation_count;
    uint64_t slot_count;
    uint64_t min_bytes;
    uint64_t max_bytes;
    uint64_t order;
    uint64_t alignment;
    uint64_t zero;
    uint64_t seed;
} plan = {1, 1000000, 16, 32768, 131072, 1, 0, 0, 42};

static uint64_t key_of(const struct slot *slot)
{
    return bench_mix64((uintptr_t)slot->block ^ slot->bytes);
}

static void *take_aligned(size_t bytes)
{
    void *block;
    int error = posix_memalign(&block, plan.alignment, bytes);
    if (error != 0) {
        bench_fail("posix_memalign(%" PRIu64 ", %zu): %s", plan.alignment, bytes, strerror(error));
    }
    if ((uintptr_t)block % plan.alignment != 0) {
        bench_fail("a block lies at %p instead of a multiple of %" PRIu64, block, plan.alignment);
    }
    return block;
}

static void *take_zero(size_t bytes)
{
    unsigned char *block = bench_table(1, bytes);
    if (bench_checks() && (block[0] != 0 || block[bytes - 1] != 0)) {
        bench_fail("a block of %zu bytes holds %u and %u instead of 0", bytes, block[0],
                   block[bytes - 1]);
    }
    return block;
}

static void *take(size_t bytes)
{
    if (plan.alignment != 0) {
        return take_aligned(bytes);
    }
    return plan.zero ? take_zero(bytes) : bench_take(bytes);
}

static void slot_empty(struct slot *slot)
{
    if (slot->block) {
        bench_mark_check(slot->block, slot->bytes, key_of(slot));
        free(slot->block);
    }
}

static void worker_work(void *argument)
{
    struct worker *worker = argument;
    uint32_t range_bytes = (uint32_t)(plan.max_bytes - plan.min_bytes);
    for (uint64_t i = 0; i < plan.operation_count; i++) {
        uint32_t random = worker->random = bench_xorshift32(worker->random);
        uint64_t index =
            plan.order == 1 ? i % plan.slot_count
                            : bench_below((uint32_t)bench_mix64(random), (uint32_t)plan.slot_count);
        struct slot *slot = &worker->slots[index];
        slot_empty(slot);
        slot->bytes = (size_t)plan.min_bytes + bench_below(random, range_bytes);
        slot->block = take(slot->bytes);
        bench_mark(slot->block, slot->bytes, key_of(slot));
    }
    for (uint64_t i = 0; i < plan.slot_count; i++) {
        slot_empty(&worker->slots[i]);
    }
}

/* As posix_memalign has it. */
static void alignment_check(void)
{
    bool is_power = (plan.alignment & (plan.alignment - 1)) == 0;
    if (plan.alignment != 0 && (!is_power || plan.alignment < sizeof(void *))) {
        fprintf(stderr, "%s: ALIGNMENT is %" PRIu64 ", expected 0 or a power of two from 8 on\n",
                program_invocation_short_name, plan.alignment);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"THREADS", "threads", &plan.thread_count, 1, MOST_THREADS},
        {"OPERATIONS", "operations of each thread", &plan.operation_count, 1, UINT32_MAX},
        {"SLOTS", "blocks of each thread", &plan.slot_count, 1, 1u << 24},
        {"MIN", "least bytes of a block", &plan.min_bytes, 1, 1u << 30},
        {"MAX", "above the most bytes of a block", &plan.max_bytes, 2, 1u << 30},
        {"ORDER", "1: the oldest block is replaced, 0: any", &plan.order, 0, 1},
        {"ALIGNMENT", "of the blocks, 0: malloc's", &plan.alignment, 0, 1u << 30},
        {"ZERO", "1: blocks from calloc", &plan.zero, 0, 1},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "A set of blocks of which one after the other is replaced.",
                         arguments, 9);
    bench_range_check(plan.min_bytes, plan.max_bytes);
    alignment_check();
    static struct worker workers[MOST_THREADS];
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        workers[i].slots = bench_table(plan.slot_count, sizeof(struct slot));
        workers[i].random = bench_seed_for(plan.seed, i);
    }
    uint64_t elapsed_ns =
        bench_team_run((uint32_t)plan.thread_count, worker_work, workers, sizeof(*workers));
    for (uint32_t i = 0; i < plan.thread_count; i++) {
        free(workers[i].slots);
    }
    bench_report(plan.thread_count * plan.operation_count, elapsed_ns);
    return 0;
}
