/* SPDX-License-Identifier: MIT */
/* bench/workloads/valley.c - a large heap of which little is left, and what becomes of the rest.
 *
 *   valley [BLOCKS] [PERCENT] [LOAD_MS] [LOAD_STEPS] [IDLE_MS] [SEED]
 *
 * Models a service after its peak: BLOCKS blocks of 16 to 256 bytes; PERCENT of them, chosen at
 * random, are freed; then for LOAD_MS milliseconds 1 % of the load, LOAD_STEPS steps evenly spread:
 * a block allocated and freed at once, or one of the live replaced, in turn; then IDLE_MS
 * milliseconds of nothing; then it is filled again and all are freed. One operation is one malloc
 * of the two fillings; the time is that of both. With the default times a run takes about 8 s.
 *
 * Notes: live bytes, the page floor (4 KiB pages that hold a live byte: what cannot go back without
 * moving blocks) and resident memory after the filling, the freeing, the load and the idle time;
 * nanoseconds of a block of the first and of the second filling.
 *
 * Checked at each free: both ends of the block.
 */
#include "bench.h"
#include "memory.h"

#define PAGE_SHIFT 12
#define LEAST_BYTES 16
#define MOST_BYTES 256

struct slot {
    void *block;
    uint32_t size_bytes;
};

static struct {
    uint64_t block_count;
    uint64_t percent;
    uint64_t load_ms;
    uint64_t load_step_count;
    uint64_t idle_ms;
    uint64_t seed;
} plan = {2000000, 99, 2000, 200000, 5000, 42};

static struct slot *slots;
static uint64_t *pages; /* scratch to sort the numbers of pages */
static uint64_t *scratch;
static uint32_t random_state;

static uint64_t key_of(const struct slot *slot)
{
    return bench_mix64((uintptr_t)slot->block + slot->size_bytes);
}

static void slot_fill(struct slot *slot)
{
    random_state = bench_xorshift32(random_state);
    slot->size_bytes = LEAST_BYTES + bench_below(random_state, MOST_BYTES - LEAST_BYTES + 1);
    slot->block = bench_take(slot->size_bytes);
    bench_mark(slot->block, slot->size_bytes, key_of(slot));
}

static void slot_empty(struct slot *slot)
{
    if (slot->block) {
        bench_mark_check(slot->block, slot->size_bytes, key_of(slot));
        free(slot->block);
        slot->block = NULL;
    }
}

/* Fills empty slots; returns nanoseconds. */
static uint64_t slots_fill(uint64_t *filled_count)
{
    uint64_t start_ns = bench_now_ns();
    for (uint64_t i = 0; i < plan.block_count; i++) {
        if (!slots[i].block) {
            slot_fill(&slots[i]);
            (*filled_count)++;
        }
    }
    return bench_now_ns() - start_ns;
}

static uint32_t random_slot(void)
{
    random_state = bench_xorshift32(random_state);
    return bench_below(random_state, (uint32_t)plan.block_count);
}

static void slots_thin(void)
{
    uint64_t left = plan.block_count * plan.percent / 100;
    while (left != 0) {
        struct slot *slot = &slots[random_slot()];
        left -= slot->block != NULL;
        slot_empty(slot);
    }
}

/* Sorts by 16 bits at a time; page numbers have 36. */
static void pages_sort(uint64_t count)
{
    static uint32_t starts[65537];
    for (uint32_t shift = 0; shift < 48; shift += 16) {
        memset(starts, 0, sizeof(starts));
        for (uint64_t i = 0; i < count; i++) {
            starts[(pages[i] >> shift & 0xFFFF) + 1]++;
        }
        for (uint32_t i = 0; i < 65536; i++) {
            starts[i + 1] += starts[i];
        }
        for (uint64_t i = 0; i < count; i++) {
            scratch[starts[pages[i] >> shift & 0xFFFF]++] = pages[i];
        }
        uint64_t *swap = pages;
        pages = scratch;
        scratch = swap;
    }
}

/* Live bytes and the pages that hold one of them, then what is resident. */
static void memory_note(const char *when)
{
    uint64_t live_bytes = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < plan.block_count; i++) {
        if (slots[i].block) {
            uintptr_t first = (uintptr_t)slots[i].block;
            live_bytes += slots[i].size_bytes;
            pages[count++] = first >> PAGE_SHIFT;
            pages[count++] = (first + slots[i].size_bytes - 1) >> PAGE_SHIFT;
        }
    }
    pages_sort(count);
    uint64_t page_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        page_count += i == 0 || pages[i] != pages[i - 1];
    }
    bench_note("live_%s: %.2f MiB", when, (double)live_bytes / BENCH_MIB);
    bench_note("floor_%s: %.2f MiB", when, (double)(page_count << PAGE_SHIFT) / BENCH_MIB);
    bench_note("rss_%s: %.2f MiB", when, bench_rss_mib());
}

static void sleep_until(uint64_t when_ns)
{
    uint64_t now_ns = bench_now_ns();
    while (now_ns < when_ns) {
        struct timespec left = {(time_t)((when_ns - now_ns) / 1000000000),
                                (long)((when_ns - now_ns) % 1000000000)};
        nanosleep(&left, NULL);
        now_ns = bench_now_ns();
    }
}

/* A random one of the live; there is always one, since PERCENT is below 100. */
static struct slot *live_slot(void)
{
    struct slot *slot = &slots[random_slot()];
    while (!slot->block) {
        slot = &slots[random_slot()];
    }
    return slot;
}

/* A step in each LOAD_MS / LOAD_STEPS, in groups, so that the sleep is not most of the work. */
static void load_run(void)
{
    uint64_t start_ns = bench_now_ns();
    for (uint64_t step = 0; step < plan.load_step_count; step++) {
        if (step % 100 == 0) {
            sleep_until(start_ns + plan.load_ms * 1000000 / plan.load_step_count * step);
        }
        struct slot brief;
        struct slot *slot = &brief;
        if (step % 2 == 0) {
            slot_fill(&brief);
        } else {
            slot = live_slot();
        }
        slot_empty(slot);
        if (step % 2 == 1) {
            slot_fill(slot);
        }
    }
    sleep_until(start_ns + plan.load_ms * 1000000);
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"BLOCKS", "blocks of the peak", &plan.block_count, 1, 1u << 30},
        {"PERCENT", "share that is freed", &plan.percent, 1, 99},
        {"LOAD_MS", "milliseconds of little load", &plan.load_ms, 0, 3600000},
        {"LOAD_STEPS", "steps of it", &plan.load_step_count, 1, UINT32_MAX},
        {"IDLE_MS", "milliseconds of nothing", &plan.idle_ms, 0, 3600000},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "A large heap of which little is left.", arguments, 6);
    slots = bench_map(plan.block_count, sizeof(*slots));
    pages = bench_map(2 * plan.block_count, sizeof(*pages));
    scratch = bench_map(2 * plan.block_count, sizeof(*scratch));
    random_state = bench_seed_for(plan.seed, 0);

    uint64_t filled_count = 0;
    uint64_t first_ns = slots_fill(&filled_count);
    memory_note("filled");
    slots_thin();
    memory_note("freed");
    load_run();
    memory_note("loaded");
    sleep_until(bench_now_ns() + plan.idle_ms * 1000000);
    memory_note("idle");
    uint64_t refilled_count = 0;
    uint64_t again_ns = slots_fill(&refilled_count);
    for (uint64_t i = 0; i < plan.block_count; i++) {
        slot_empty(&slots[i]);
    }
    bench_note("first_fill: %.2f ns", (double)first_ns / (double)filled_count);
    bench_note("second_fill: %.2f ns", (double)again_ns / (double)refilled_count);
    bench_report(filled_count + refilled_count, first_ns + again_ns);
    return 0;
}
