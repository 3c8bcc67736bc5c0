/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/slow_clock_test.c - slow paths are clocked while that is wanted. */
#include "heap/slow_clock.h"

#include "api/api.h"
#include "check.h"

#define BLOCK_BYTES 1024u
#define BLOCKS 4000u

static uint64_t sum_of(const _Atomic uint64_t *sum)
{
    return hak_load_relaxed(sum);
}

/* So many requests that bins run empty and full. */
static void work(void)
{
    static void *blocks[BLOCKS];
    for (uint32_t i = 0; i < BLOCKS; i++)
        blocks[i] = hak_malloc(BLOCK_BYTES);
    for (uint32_t i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
}

TEST(nothing_is_clocked_unless_it_is_wanted)
{
    work();
    CHECK_EQ(sum_of(&hak_slow_sums.ns), 0);
    CHECK_EQ(sum_of(&hak_slow_sums.refilled_bytes), 0);
    hak_free(hak_malloc(1 << 20));
    CHECK_EQ(sum_of(&hak_slow_sums.large_bytes), 0);
}

TEST(what_is_wanted_is_summed)
{
    hak_store_relaxed(&hak_slow_clock, 1);
    for (int i = 0; i < 20; i++)
        work();
    CHECK(sum_of(&hak_slow_sums.ns) > 0);
    CHECK(sum_of(&hak_slow_sums.refilled_bytes) > 0);
    CHECK_EQ(sum_of(&hak_slow_sums.refilled_bytes) % BLOCK_BYTES, 0);
    hak_free(hak_malloc(1 << 20));
    CHECK_EQ(sum_of(&hak_slow_sums.large_bytes), 1 << 20);
    hak_store_relaxed(&hak_slow_clock, 0);
    uint64_t ns = sum_of(&hak_slow_sums.ns);
    work();
    CHECK_EQ(sum_of(&hak_slow_sums.ns), ns);
}

/* One in eight stands for eight: the sum is about what all of them served. */
TEST(the_drawn_ones_stand_for_all)
{
    hak_store_relaxed(&hak_slow_clock, 1);
    struct cache cache = {.id = 0};
    uint64_t drawn = 0;
    for (uint32_t i = 0; i < 80000; i += 2) { /* every other one: as refills between flushes */
        hak_store_relaxed(&cache.slow_count, i);
        drawn += hak_slow_begin(&cache) != 0;
    }
    CHECK(drawn > 4700 && drawn < 5300);
}
