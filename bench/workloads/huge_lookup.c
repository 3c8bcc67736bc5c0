/* SPDX-License-Identifier: MIT */
/* bench/workloads/huge_lookup.c - random look-ups in a great many small blocks.
 *
 *   huge_lookup [MIB] [BYTES] [LOOKUPS] [SEED]
 *
 * Models an index in memory: MIB MiB of blocks of BYTES bytes, then LOOKUPS times a random block is
 * read. What an allocator can do is to place them well: few pages, few TLB entries (huge pages).
 * One operation is one look-up.
 *
 * Notes: seconds to fill and to free, and what is resident for each block when all are there.
 *
 * Checked at each look-up and before the end: the block's mark.
 */
#include "bench.h"
#include "memory.h"

static struct {
    uint64_t mib_count;
    uint64_t block_bytes;
    uint64_t lookup_count;
    uint64_t seed;
} plan = {1024, 64, 5000000, 42};

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"MIB", "MiB of blocks", &plan.mib_count, 1, 1u << 20},
        {"BYTES", "bytes of a block", &plan.block_bytes, 1, 1u << 20},
        {"LOOKUPS", "look-ups", &plan.lookup_count, 1, UINT32_MAX},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Random look-ups in a great many small blocks.", arguments, 4);
    uint64_t block_count = (plan.mib_count << 20) / plan.block_bytes;
    if (block_count > UINT32_MAX) {
        fprintf(stderr, "%s: MIB and BYTES make more than %u blocks\n",
                program_invocation_short_name, UINT32_MAX);
        return 2;
    }
    unsigned char **blocks = bench_map(block_count, sizeof(*blocks));
    uint64_t before_bytes = bench_rss_bytes();
    uint64_t fill_ns = bench_now_ns();
    for (uint64_t i = 0; i < block_count; i++) {
        blocks[i] = bench_take(plan.block_bytes);
        bench_mark(blocks[i], plan.block_bytes, i);
    }
    fill_ns = bench_now_ns() - fill_ns;
    double rss_bytes = (double)bench_rss_bytes() - (double)before_bytes;

    uint32_t random = bench_seed_for(plan.seed, 0);
    uint64_t start_ns = bench_now_ns();
    for (uint64_t left = plan.lookup_count; left != 0; left--) {
        random = bench_xorshift32(random);
        uint32_t index = bench_below(random, (uint32_t)block_count);
        bench_mark_check(blocks[index], plan.block_bytes, index);
    }
    uint64_t elapsed_ns = bench_now_ns() - start_ns;

    uint64_t free_ns = bench_now_ns();
    for (uint64_t i = 0; i < block_count; i++) {
        bench_mark_check(blocks[i], plan.block_bytes, i);
        free(blocks[i]);
    }
    free_ns = bench_now_ns() - free_ns;
    bench_note("fill: %.6f s", (double)fill_ns * 1e-9);
    bench_note("rss_per_block: %.2f B", rss_bytes / (double)block_count);
    bench_note("free: %.6f s", (double)free_ns * 1e-9);
    bench_report(plan.lookup_count, elapsed_ns);
    return 0;
}
