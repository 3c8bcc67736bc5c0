/* SPDX-License-Identifier: MIT */
/* tests/preload/held.c - options `limit` and `soft_limit` in whole programs. If this fails, a
 * program that was given a bound is killed by the kernel for passing it, or dies of requests that
 * there was room for. */
#include "program.h"

#define MIB (1ul << 20)
#define BLOCKS_MOST 65536
#define THREADS 4

static void *blocks[BLOCKS_MOST];

static unsigned take_until_refused(size_t bytes)
{
    unsigned count = 0;
    while (count < BLOCKS_MOST && (blocks[count] = malloc(bytes)) != NULL) {
        fill(blocks[count], bytes < 64 ? bytes : 64, count);
        memset((char *)blocks[count] + 64, 1, bytes - 64);
        count++;
    }
    CHECK(count < BLOCKS_MOST);
    CHECK_EQ(errno, ENOMEM);
    return count;
}

TEST(a_program_takes_what_the_limit_allows_and_has_it_again_after_frees)
{
    time_limit(500);
    WITH_SETTING("HAKMEM_LIMIT", "40M");
    check_is_served();
    size_t before = resident_bytes();
    static const size_t sizes[] = {3000, 200000, 64, 40000, 5000000, 1000};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] * BLOCKS_MOST < 40 * MIB)
            continue;
        unsigned count = take_until_refused(sizes[i]);
        CHECK(resident_bytes() <= before + 41 * MIB);
        CHECK(count * sizes[i] >= 24 * MIB);
        for (unsigned k = 0; k < count; k++)
            CHECK(is_filled(blocks[k], 64, k));
        for (unsigned k = 0; k < count; k++)
            free(blocks[k]);
    }
}

static void *take_and_give(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    static _Thread_local char *mine[64];
    size_t refused = 0;
    for (unsigned i = 0; i < 20000; i++) {
        unsigned at = next_random(&state) % 64;
        free(mine[at]);
        size_t bytes = 1 + next_random(&state) % 600000;
        mine[at] = malloc(bytes);
        refused += mine[at] == NULL;
        if (mine[at] != NULL)
            mine[at][0] = mine[at][bytes - 1] = 1;
    }
    for (unsigned i = 0; i < 64; i++)
        free(mine[i]);
    return (void *)(uintptr_t)refused;
}

/* Four times 64 blocks of 300 KB would take 77 MB. */
TEST(threads_share_the_limit_and_all_of_it_is_there_in_the_end)
{
    time_limit(500);
    WITH_SETTING("HAKMEM_LIMIT", "40M");
    check_is_served();
    pthread_t threads[THREADS];
    size_t refused = 0;
    start_threads(threads, THREADS, take_and_give);
    for (int i = 0; i < THREADS; i++)
        refused += (uintptr_t)join_thread(threads[i]);
    CHECK(refused > 0);
    CHECK(refused < 20000 * THREADS / 2);
    void *block = malloc(30 * MIB);
    CHECK(block != NULL);
    free(block);
}

TEST(a_limit_below_what_the_start_takes_refuses_and_the_program_ends_well)
{
    time_limit(500);
    WITH_SETTING("HAKMEM_LIMIT", "300K");
    check_is_served();
    CHECK(malloc(10 * MIB) == NULL);
    CHECK_EQ(errno, ENOMEM);
}

TEST(above_the_soft_limit_free_memory_is_returned_at_once)
{
    time_limit(500);
    WITH_SETTING("HAKMEM_SOFT_LIMIT", "24M");
    check_is_served();
    size_t before = resident_bytes();
    unsigned state = 1;
    for (unsigned i = 0; i < 4000; i++) {
        unsigned at = next_random(&state) % 64;
        free(blocks[at]);
        size_t bytes = 1 + next_random(&state) % 600000;
        blocks[at] = malloc(bytes);
        memset(blocks[at], 1, bytes);
        /* 19 MB are live; what is free beyond 24 goes. */
        CHECK(resident_bytes() <= before + 32 * MIB);
    }
}
