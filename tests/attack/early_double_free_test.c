/* SPDX-License-Identifier: MIT */
/* tests/attack/early_double_free_test.c - blocks are freed in turns, one of them twice, by a
 * program that has hardly begun. */
#define _GNU_SOURCE
#include "attack.h"
#include "heap/cache.h"
#include "process/tick.h"
#include "stay.h"

/* Both copies lie in a bin that is not full, when the cache comes to so many slow operations. */
static void free_in_turns(uint32_t slow_count)
{
    stay_here();
    void *block = hak_malloc(64), *other = hak_malloc(64);
    hak_free(block);
    hak_free(other);
    hak_free(block);
    CHECK(hak_own_cache() != NULL);
    hak_store_relaxed(&hak_own_cache()->slow_count, slow_count - 1);
    void *first = hak_malloc(900); /* there is none ready */
    _exit(first == NULL);
}

TEST(it_is_reported_when_the_cache_has_been_in_few_slow_paths)
{
    for (uint32_t count = HAK_SLOW_OPERATIONS_UNTIL_CHECK;
         count <= HAK_SLOW_OPERATIONS_UNTIL_LAST_CHECK; count *= 2) {
        CHECK_REPORTS(free_in_turns(count), "double free", "block of 64 bytes, already free\n");
        CHECK_EXITS(free_in_turns(count + 1), 0);
    }
    CHECK_EXITS(free_in_turns(2 * HAK_SLOW_OPERATIONS_UNTIL_LAST_CHECK), 0);
}

static void work(uint32_t slow_count)
{
    stay_here();
    void *blocks[200];
    for (size_t i = 0; i < 200; i++)
        blocks[i] = hak_malloc(16 + i * 40);
    for (size_t i = 0; i < 200; i++)
        hak_free(blocks[i]);
    hak_store_relaxed(&hak_own_cache()->slow_count, slow_count - 1);
    void *first = hak_malloc(100000);
    _exit(first == NULL);
}

TEST(nothing_is_reported_of_full_bins_in_which_each_block_is_once)
{
    for (uint32_t count = HAK_SLOW_OPERATIONS_UNTIL_CHECK;
         count <= HAK_SLOW_OPERATIONS_UNTIL_LAST_CHECK; count *= 2)
        CHECK_EXITS(work(count), 0);
}
