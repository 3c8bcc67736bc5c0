/* SPDX-License-Identifier: MIT */
/* bench/workloads/burst.c - bursts of allocations, freed first to last, last to first, at random.
 *
 *   burst [ORDER] [BLOCKS] [ROUNDS] [MIN] [MAX] [SEED]
 *
 * Models loading and dropping: each round allocates BLOCKS blocks of MIN <= bytes < MAX, marks
 * them, and frees all of them in ORDER: 1 first to last, 2 last to first, 3 at random, 0 all three
 * in turn. One operation is one block, its malloc and its free included.
 *
 * Notes: nanoseconds per malloc of the bursts, and per free in each order.
 *
 * Checked at each free: both ends of the block.
 */
#include "bench.h"

enum order { EACH_IN_TURN, FIRST_TO_LAST, LAST_TO_FIRST, AT_RANDOM, ORDERS };

struct item {
    void *block;
    uint32_t size_bytes;
};

static struct {
    uint64_t order;
    uint64_t block_count;
    uint64_t round_count;
    uint64_t min_bytes;
    uint64_t max_bytes;
    uint64_t seed;
} plan = {EACH_IN_TURN, 100000, 30, 16, 512, 42};

static uint64_t take_ns;
static uint64_t free_ns[ORDERS];
static uint64_t freed_count[ORDERS];

static uint64_t key_of(const struct item *item)
{
    return bench_mix64((uintptr_t)item->block ^ item->size_bytes);
}

static uint32_t items_take(struct item *items, uint32_t random)
{
    for (uint64_t i = 0; i < plan.block_count; i++) {
        random = bench_xorshift32(random);
        items[i].size_bytes = (uint32_t)plan.min_bytes +
                              bench_below(random, (uint32_t)(plan.max_bytes - plan.min_bytes));
        items[i].block = bench_take(items[i].size_bytes);
        bench_mark(items[i].block, items[i].size_bytes, key_of(&items[i]));
    }
    return random;
}

static void items_reverse(struct item *items)
{
    for (uint64_t i = 0; i < plan.block_count / 2; i++) {
        struct item item = items[i];
        items[i] = items[plan.block_count - 1 - i];
        items[plan.block_count - 1 - i] = item;
    }
}

static uint32_t items_shuffle(struct item *items, uint32_t random)
{
    for (uint64_t i = plan.block_count - 1; i > 0; i--) {
        random = bench_xorshift32(random);
        uint32_t other = bench_below(random, (uint32_t)i + 1);
        struct item item = items[i];
        items[i] = items[other];
        items[other] = item;
    }
    return random;
}

static void items_free(struct item *items)
{
    for (uint64_t i = 0; i < plan.block_count; i++) {
        bench_mark_check(items[i].block, items[i].size_bytes, key_of(&items[i]));
        free(items[i].block);
    }
}

/* One burst; rearranging the items is not timed. */
static uint32_t round_run(struct item *items, enum order order, uint32_t random)
{
    uint64_t start_ns = bench_now_ns();
    random = items_take(items, random);
    take_ns += bench_now_ns() - start_ns;
    if (order == LAST_TO_FIRST) {
        items_reverse(items);
    } else if (order == AT_RANDOM) {
        random = items_shuffle(items, random);
    }
    start_ns = bench_now_ns();
    items_free(items);
    free_ns[order] += bench_now_ns() - start_ns;
    freed_count[order] += plan.block_count;
    return random;
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"ORDER", "1 first to last, 2 last to first, 3 random, 0 each", &plan.order, 0, 3},
        {"BLOCKS", "blocks of a burst", &plan.block_count, 1, 1u << 30},
        {"ROUNDS", "bursts", &plan.round_count, 1, UINT32_MAX},
        {"MIN", "least bytes of a block", &plan.min_bytes, 1, UINT32_MAX},
        {"MAX", "a block has fewer bytes than this", &plan.max_bytes, 2, UINT32_MAX},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Bursts of allocations, freed in one of three orders.",
                         arguments, 6);
    bench_range_check(plan.min_bytes, plan.max_bytes);

    struct item *items = bench_table(plan.block_count, sizeof(*items));
    uint32_t random = bench_seed_for(plan.seed, 0);
    for (uint64_t round = 0; round < plan.round_count; round++) {
        enum order order = plan.order != EACH_IN_TURN ? (enum order)plan.order
                                                      : (enum order)(FIRST_TO_LAST + round % 3);
        random = round_run(items, order, random);
    }
    free(items);
    static const char *const names[] = {"", "first_to_last", "last_to_first", "at_random"};
    uint64_t elapsed_ns = take_ns;
    uint64_t block_count = plan.round_count * plan.block_count;
    bench_note("malloc: %.2f ns", (double)take_ns / (double)block_count);
    for (enum order order = FIRST_TO_LAST; order < ORDERS; order++) {
        elapsed_ns += free_ns[order];
        if (freed_count[order] != 0) {
            bench_note("free_%s: %.2f ns", names[order],
                       (double)free_ns[order] / (double)freed_count[order]);
        }
    }
    bench_report(block_count, elapsed_ns);
    return 0;
}
