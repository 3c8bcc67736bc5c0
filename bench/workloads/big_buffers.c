/* SPDX-License-Identifier: MIT */
/* bench/workloads/big_buffers.c - a few buffers of many MiB, replaced and filled.
 *
 *   big_buffers [ROUNDS] [SLOTS] [MIN] [MAX] [SEED]
 *
 * Models a media or scientific program: SLOTS slots; each round takes a buffer of MIN to MAX bytes
 * (both included, evenly), fills all of it, and only then frees the one that was in the next slot.
 * The numbers are Marsaglia's 32-bit xorshift from SEED. One operation is 4 KiB filled. A round
 * of the default sizes fills 15 MiB; the 2,000 rounds take some seconds, 200 tell much.
 *
 * Notes: peak of resident memory, page faults, and time inside malloc and free.
 *
 * Checked when a buffer is freed: one byte of each page, and its last byte.
 */
#include "bench.h"
#include "memory.h"

struct slot {
    unsigned char *buffer;
    size_t size_bytes;
};

static struct {
    uint64_t round_count;
    uint64_t slot_count;
    uint64_t min_bytes;
    uint64_t max_bytes;
    uint64_t seed;
} plan = {2000, 20, (uint64_t)5 << 20, (uint64_t)25 << 20, 42};

static uint64_t inside_ns;

static unsigned char fill_of(const struct slot *slot)
{
    return (unsigned char)(slot->size_bytes * 0x9E3779B1u >> 24);
}

static void slot_fill(struct slot *slot, size_t size_bytes)
{
    uint64_t start_ns = bench_now_ns();
    slot->buffer = bench_take(size_bytes);
    inside_ns += bench_now_ns() - start_ns;
    slot->size_bytes = size_bytes;
    memset(slot->buffer, fill_of(slot), size_bytes);
}

static void byte_check(const struct slot *slot, size_t offset)
{
    if (slot->buffer[offset] != fill_of(slot)) {
        bench_fail("byte %zu of %zu is %u instead of %u", offset, slot->size_bytes,
                   slot->buffer[offset], fill_of(slot));
    }
}

static void slot_empty(struct slot *slot)
{
    if (!slot->buffer) {
        return;
    }
    for (size_t offset = 0; bench_checks() && offset < slot->size_bytes; offset += 4096) {
        byte_check(slot, offset);
    }
    if (bench_checks()) {
        byte_check(slot, slot->size_bytes - 1);
    }
    uint64_t start_ns = bench_now_ns();
    free(slot->buffer);
    inside_ns += bench_now_ns() - start_ns;
    slot->buffer = NULL;
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"ROUNDS", "buffers", &plan.round_count, 1, UINT32_MAX},
        {"SLOTS", "buffers that live", &plan.slot_count, 1, 65536},
        {"MIN", "least bytes of a buffer", &plan.min_bytes, 1, UINT32_MAX},
        {"MAX", "most bytes of a buffer", &plan.max_bytes, 1, UINT32_MAX},
        {"SEED", "start of the random numbers", &plan.seed, 1, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "A few buffers of many MiB, replaced and filled.", arguments,
                         5);
    bench_order_check("MIN", plan.min_bytes, "MAX", plan.max_bytes);

    struct slot *slots = bench_table(plan.slot_count, sizeof(*slots));
    uint32_t random = (uint32_t)plan.seed;
    uint64_t sum_bytes = 0;
    uint64_t faults = bench_minor_faults();
    uint64_t start_ns = bench_now_ns();
    for (uint64_t round = 0; round < plan.round_count; round++) {
        random = bench_xorshift32(random);
        size_t size_bytes =
            plan.min_bytes + bench_below(random, (uint32_t)(plan.max_bytes - plan.min_bytes + 1));
        sum_bytes += size_bytes;
        struct slot fresh;
        slot_fill(&fresh, size_bytes);
        slot_empty(&slots[round % plan.slot_count]);
        slots[round % plan.slot_count] = fresh;
    }
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    faults = bench_minor_faults() - faults;
    bench_note("peak_rss: %.2f MiB", bench_peak_rss_mib());
    bench_note("minor_faults: %" PRIu64 " faults", faults);
    bench_note("inside: %.6f s", (double)inside_ns * 1e-9);
    for (uint64_t i = 0; i < plan.slot_count; i++) {
        slot_empty(&slots[i]);
    }
    free(slots);
    bench_report(sum_bytes / 4096, elapsed_ns);
    return 0;
}
