/* SPDX-License-Identifier: MIT */
/* bench/workloads/bench_random_mixed.c - small blocks of random size in random order, one thread.
 *
 *   bench_random_mixed [CYCLES] [WORKING_SET] [SEED]
 *
 * An array of WORKING_SET slots, all empty at first. Each cycle draws a random number r and picks
 * slot r % WORKING_SET: a full slot is freed and emptied, an empty one gets a block of
 * 16 + (r & 1023) bytes whose first byte is written. So about half of the slots are full, and half
 * of the cycles are a malloc, the other half a free. One operation is one cycle.
 *
 * Checked after the clock has stopped: the first byte of each block that is still there.
 */
#include "bench.h"

/* The byte that a slot's block begins with: of the address, which the loop has anyway. */
static inline unsigned char slot_mark(unsigned char **slot)
{
    return (unsigned char)(uintptr_t)slot;
}

/* Runs the cycles; returns how long they took, in nanoseconds. Kept apart from main so that the
 * loop's variables stay in registers: it costs 25.5 instructions a cycle (gcc 12, -O2). */
static __attribute__((noinline)) uint64_t cycles_run(unsigned char **slots, uint64_t cycle_count,
                                                     uint32_t slot_count, uint32_t random)
{
    uint64_t start_ns = bench_now_ns();
    for (uint64_t left = cycle_count; left != 0; left--) {
        random = bench_xorshift32(random);
        unsigned char **slot = &slots[random % slot_count];
        if (*slot) {
            free(*slot);
            *slot = NULL;
        } else {
            unsigned char *block = malloc(16 + (random & 0x3FF));
            if (!block) {
                bench_fail("malloc returned NULL");
            }
            block[0] = slot_mark(slot);
            *slot = block;
        }
    }
    return bench_now_ns() - start_ns;
}

/* Frees the blocks that are left, each after its first byte was checked. */
static void slots_empty(unsigned char **slots, uint32_t slot_count)
{
    bool verifies = bench_verifies();
    for (uint32_t index = 0; index < slot_count; index++) {
        unsigned char *block = slots[index];
        if (block && verifies && block[0] != slot_mark(&slots[index])) {
            bench_fail("slot %u holds %u instead of %u", index, block[0], slot_mark(&slots[index]));
        }
        free(block);
    }
}

int main(int argc, char **argv)
{
    uint64_t cycle_count = 10000000;
    uint64_t slot_count = 8192;
    uint64_t seed = 1234567;
    const struct bench_argument arguments[] = {
        {"CYCLES", "mallocs and frees together", &cycle_count, 1, UINT64_MAX},
        {"WORKING_SET", "slots", &slot_count, 1, UINT32_MAX},
        {"SEED", "start of the random numbers", &seed, 1, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Small blocks of random size in random order, one thread.",
                         arguments, 3);

    unsigned char **slots = bench_table(slot_count, sizeof(*slots));
    uint64_t elapsed_ns = cycles_run(slots, cycle_count, (uint32_t)slot_count, (uint32_t)seed);
    slots_empty(slots, (uint32_t)slot_count);
    free(slots);
    bench_report(cycle_count, elapsed_ns);
    return 0;
}
