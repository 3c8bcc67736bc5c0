/* SPDX-License-Identifier: MIT */
/* bench/workloads/bench_mid_large_mt.c - middling blocks in several threads, some freed by others.
 *
 *   bench_mid_large_mt THREADS OPERATIONS SLOTS MIN MAX SEED
 *
 * Each thread has SLOTS slots, all empty at first, and does OPERATIONS operations: one frees the
 * block in a random slot, puts a block of MIN <= bytes < MAX in its place and writes one byte in
 * each 4 KiB of it. Each tenth freed block goes through a ring of 64 entries to the next thread,
 * which frees it; if the ring is full, or there is only one thread, the thread frees it itself.
 * One operation is one replacement; all threads are counted together.
 *
 * Checked after the clock has stopped: every written byte of the blocks that are still there.
 */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>

#define PAGE_BYTES 4096
#define RING_ENTRIES 64
#define FREES_PER_HANDOVER 10
#define MOST_THREADS 1024

/* Pointers from one producer to one consumer. `given` counts what was put in and belongs to the
 * producer, `taken` what was removed and belongs to the consumer. */
struct ring {
    _Alignas(BENCH_CACHE_LINE_BYTES) atomic_uint given;
    _Alignas(BENCH_CACHE_LINE_BYTES) atomic_uint taken;
    _Alignas(BENCH_CACHE_LINE_BYTES) void *entries[RING_ENTRIES];
};

struct slot {
    unsigned char *block;
    size_t block_bytes;
};

struct worker {
    struct ring incoming;
    struct ring *outgoing; /* the next thread's, NULL if there is only one thread */
    struct slot *slots;
    uint64_t start_ns;
    uint64_t end_ns;
    pthread_t thread;
    uint32_t random;
    uint32_t frees_to_handover;
};

static struct {
    uint64_t operation_count;
    uint32_t slot_count;
    uint32_t min_bytes;
    uint32_t range_bytes;
    pthread_barrier_t start;
    pthread_barrier_t end;
} plan;

static struct worker workers[MOST_THREADS];

/* Hands a block over; false if the ring is full. */
static bool ring_give(struct ring *ring, void *block)
{
    unsigned given = atomic_load_explicit(&ring->given, memory_order_relaxed);
    /* Pairs with the release in ring_drain: an entry is read before it is reused. */
    if (given - atomic_load_explicit(&ring->taken, memory_order_acquire) == RING_ENTRIES) {
        return false;
    }
    ring->entries[given % RING_ENTRIES] = block;
    /* Pairs with the acquire in ring_drain. */
    atomic_store_explicit(&ring->given, given + 1, memory_order_release);
    return true;
}

/* Frees everything that was handed to this ring's owner. */
static void ring_drain(struct ring *ring)
{
    unsigned taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    /* Pairs with the release in ring_give. */
    unsigned given = atomic_load_explicit(&ring->given, memory_order_acquire);
    if (taken == given) {
        return;
    }
    while (taken != given) {
        free(ring->entries[taken % RING_ENTRIES]);
        taken++;
    }
    /* Pairs with the acquire in ring_give. */
    atomic_store_explicit(&ring->taken, taken, memory_order_release);
}

/* Frees a block, or has the next thread free it if its turn has come. */
static void worker_dispose(struct worker *worker, void *block)
{
    if (--worker->frees_to_handover == 0) {
        worker->frees_to_handover = FREES_PER_HANDOVER;
        if (worker->outgoing && ring_give(worker->outgoing, block)) {
            return;
        }
    }
    free(block);
}

static void worker_replace(struct worker *worker)
{
    worker->random = bench_xorshift32(worker->random);
    uint32_t index = bench_below(worker->random, plan.slot_count);
    struct slot *slot = &worker->slots[index];
    if (slot->block) {
        worker_dispose(worker, slot->block);
    }
    worker->random = bench_xorshift32(worker->random);
    slot->block_bytes = plan.min_bytes + bench_below(worker->random, plan.range_bytes);
    slot->block = malloc(slot->block_bytes);
    if (!slot->block) {
        bench_fail("malloc(%zu) returned NULL", slot->block_bytes);
    }
    for (size_t offset = 0; offset < slot->block_bytes; offset += PAGE_BYTES) {
        slot->block[offset] = (unsigned char)index;
    }
}

/* Frees the blocks that are left, each after its written bytes were checked. */
static void worker_empty(struct worker *worker)
{
    bool verifies = bench_verifies();
    for (uint32_t index = 0; index < plan.slot_count; index++) {
        struct slot *slot = &worker->slots[index];
        if (!slot->block) {
            continue;
        }
        for (size_t offset = 0; verifies && offset < slot->block_bytes; offset += PAGE_BYTES) {
            if (slot->block[offset] != (unsigned char)index) {
                bench_fail("slot %u holds %u at byte %zu instead of %u", index, slot->block[offset],
                           offset, index & 0xFF);
            }
        }
        free(slot->block);
    }
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    pthread_barrier_wait(&plan.start);
    worker->start_ns = bench_now_ns();
    for (uint64_t left = plan.operation_count; left != 0; left--) {
        ring_drain(&worker->incoming);
        worker_replace(worker);
    }
    worker->end_ns = bench_now_ns();
    pthread_barrier_wait(&plan.end); /* from here on nobody gives */
    ring_drain(&worker->incoming);
    worker_empty(worker);
    return NULL;
}

/* Runs all threads; returns the time from the first operation to the last, in nanoseconds. */
static uint64_t workers_run(uint32_t thread_count, uint64_t seed)
{
    pthread_barrier_init(&plan.start, NULL, thread_count);
    pthread_barrier_init(&plan.end, NULL, thread_count);
    for (uint32_t i = 0; i < thread_count; i++) {
        struct worker *worker = &workers[i];
        worker->outgoing = thread_count > 1 ? &workers[(i + 1) % thread_count].incoming : NULL;
        worker->slots = bench_table(plan.slot_count, sizeof(*worker->slots));
        worker->random = bench_seed_for(seed, i);
        worker->frees_to_handover = FREES_PER_HANDOVER;
        int error = pthread_create(&worker->thread, NULL, worker_main, worker);
        if (error != 0) {
            bench_fail("cannot start a thread: %s", strerror(error));
        }
    }
    uint64_t first_ns = UINT64_MAX;
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < thread_count; i++) {
        struct worker *worker = &workers[i];
        pthread_join(worker->thread, NULL);
        first_ns = worker->start_ns < first_ns ? worker->start_ns : first_ns;
        last_ns = worker->end_ns > last_ns ? worker->end_ns : last_ns;
        free(worker->slots);
    }
    return last_ns - first_ns;
}

int main(int argc, char **argv)
{
    uint64_t thread_count = 2;
    uint64_t slot_count = 512;
    uint64_t min_bytes = 8192;
    uint64_t max_bytes = 32768;
    uint64_t seed = 42;
    plan.operation_count = 1000000;
    const struct bench_argument arguments[] = {
        {"THREADS", "threads", &thread_count, 1, MOST_THREADS},
        {"OPERATIONS", "replacements by each thread", &plan.operation_count, 1, UINT32_MAX},
        {"SLOTS", "blocks of each thread", &slot_count, 1, UINT32_MAX},
        {"MIN", "least bytes of a block", &min_bytes, 1, UINT32_MAX},
        {"MAX", "a block has fewer bytes than this", &max_bytes, 2, UINT32_MAX},
        {"SEED", "start of the random numbers", &seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Middling blocks in several threads, some freed by others.",
                         arguments, 6);
    bench_range_check(min_bytes, max_bytes);

    plan.slot_count = (uint32_t)slot_count;
    plan.min_bytes = (uint32_t)min_bytes;
    plan.range_bytes = (uint32_t)(max_bytes - min_bytes);
    uint64_t elapsed_ns = workers_run((uint32_t)thread_count, seed);
    bench_report(thread_count * plan.operation_count, elapsed_ns);
    return 0;
}
