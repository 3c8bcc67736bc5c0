/* SPDX-License-Identifier: MIT */
/* bench/workloads/calloc_large.c - zeroed blocks of many MiB of which little is used.
 *
 *   calloc_large [ROUNDS] [BYTES] [PERCENT]
 *
 * Models sparse tables: ROUNDS times a block of BYTES bytes comes from calloc, one byte is written
 * in PERCENT of its pages, evenly spread, and it is freed; then the same with mmap and munmap, as a
 * yardstick. One operation is one page written; the time is that of the calloc rounds alone.
 *
 * Notes: milliseconds of a round with calloc and with mmap, and page faults of a round with calloc.
 *
 * Checked in each round: the first and the last byte and the pages that are written are zero
 * before, and the bytes are there before the block is freed.
 */
#include "bench.h"
#include "memory.h"

#define PAGE_BYTES 4096

static struct {
    uint64_t round_count;
    uint64_t block_bytes;
    uint64_t percent;
} plan = {1000, (uint64_t)64 << 20, 1};

static void byte_check(const unsigned char *block, size_t offset, unsigned char expected)
{
    if (bench_checks() && block[offset] != expected) {
        bench_fail("byte %zu of %" PRIu64 " is %u instead of %u", offset, plan.block_bytes,
                   block[offset], expected);
    }
}

/* Writes to its share of the pages; returns how many they are. */
static uint64_t block_use(unsigned char *block)
{
    size_t step_bytes = (size_t)(100 * PAGE_BYTES / plan.percent) & ~(size_t)(PAGE_BYTES - 1);
    uint64_t page_count = 0;
    byte_check(block, plan.block_bytes - 1, 0);
    for (size_t offset = 0; offset < plan.block_bytes; offset += step_bytes) {
        byte_check(block, offset, 0);
        block[offset] = (unsigned char)(offset / step_bytes + 1);
        page_count++;
    }
    for (size_t offset = 0; offset < plan.block_bytes; offset += step_bytes) {
        byte_check(block, offset, (unsigned char)(offset / step_bytes + 1));
    }
    return page_count;
}

static void calloc_round(uint64_t *page_count)
{
    unsigned char *block = calloc(1, plan.block_bytes);
    if (!block) {
        bench_fail("calloc of %" PRIu64 " bytes returned NULL", plan.block_bytes);
    }
    *page_count += block_use(block);
    free(block);
}

static void mmap_round(uint64_t *page_count)
{
    unsigned char *block = mmap(NULL, plan.block_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) {
        bench_fail("mmap: %s", strerror(errno));
    }
    *page_count += block_use(block);
    munmap(block, plan.block_bytes);
}

/* Runs all rounds of one kind; returns nanoseconds. */
static uint64_t rounds_run(void (*round_run)(uint64_t *), uint64_t *page_count)
{
    uint64_t start_ns = bench_now_ns();
    for (uint64_t left = plan.round_count; left != 0; left--) {
        round_run(page_count);
    }
    return bench_now_ns() - start_ns;
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"ROUNDS", "blocks, one after another", &plan.round_count, 1, UINT32_MAX},
        {"BYTES", "bytes of a block", &plan.block_bytes, 1, (uint64_t)1 << 40},
        {"PERCENT", "pages of a block that are written", &plan.percent, 1, 100},
    };
    bench_arguments_read(argc, argv, "Zeroed blocks of many MiB of which little is used.",
                         arguments, 3);
    uint64_t page_count = 0;
    uint64_t yard_count = 0;
    uint64_t faults = bench_minor_faults();
    uint64_t elapsed_ns = rounds_run(calloc_round, &page_count);
    faults = bench_minor_faults() - faults;
    uint64_t yard_ns = rounds_run(mmap_round, &yard_count);
    double round_count = (double)plan.round_count;
    bench_note("calloc_round: %.4f ms", (double)elapsed_ns * 1e-6 / round_count);
    bench_note("mmap_round: %.4f ms", (double)yard_ns * 1e-6 / round_count);
    bench_note("faults_per_round: %.2f faults", (double)faults / round_count);
    bench_report(page_count, elapsed_ns);
    return 0;
}
