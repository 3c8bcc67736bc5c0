/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/counters_test.c - counters count what they are named after. */
#include "check.h"
#include "heap/cache.h"
#include "stats/counters.h"

TEST(counters_start_at_zero_and_are_apart)
{
    struct stat_block block = {{0}};
    for (int i = 0; i < HAK_STAT_COUNT; i++)
        CHECK_EQ(hak_load_relaxed(&block.counters[i]), 0);
    hak_stat_add(&block, refills, 3);
    hak_stat_add(&block, refills, 4);
    hak_stat_add(&block, flushes, 1);
    CHECK_EQ(hak_load_relaxed(&block.counters[HAK_STAT_refills]), 7);
    CHECK_EQ(hak_load_relaxed(&block.counters[HAK_STAT_flushes]), 1);
    CHECK_EQ(hak_load_relaxed(&block.counters[HAK_STAT_spans_taken]), 0);
}

TEST(the_counters_of_the_process_add_up)
{
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.foreign_frees), 0);
    hak_stat_global_add(foreign_frees, 2);
    hak_stat_global_add(foreign_frees, 1);
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.foreign_frees), 3);
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.fallback), 0);
}

static struct cache cache;
static int asked_count;

/* As hak_own_cache says it to a thread that moves to a processor without a cache. */
static struct cache *own_cache(void)
{
    return asked_count++ == 0 ? &cache : NULL;
}

TEST(a_thread_that_moves_counts_in_the_cache_that_it_found)
{
    hak_stat_add_here(own_cache(), realloc_copied_bytes, 5);
    CHECK_EQ(asked_count, 1);
    CHECK_EQ(hak_load_relaxed(&cache.stats.counters[HAK_STAT_realloc_copied_bytes]), 5);
    asked_count = 0;
    hak_stat_add_for(own_cache(), spans_taken, 1);
    CHECK_EQ(asked_count, 1);
    CHECK_EQ(hak_load_relaxed(&cache.stats.counters[HAK_STAT_spans_taken]), 1);
}
