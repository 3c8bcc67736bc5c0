/* SPDX-License-Identifier: MIT */
/* tests/attack/double_free_test.c - a block is freed twice, by its owner and by others. */
#include "attack.h"
#include "process/reclaim.h"

/* Both copies of the block wait in one bin; or the first is in the slab when the second comes. */
static void free_twice(bool is_home_between)
{
    others_take(64);
    void *block = others[1], *between = hak_malloc(64);
    hak_free(block);
    hak_free(between);
    if (is_home_between)
        others_free(FIRST_HALF);
    hak_free(block);
    if (!is_home_between)
        others_free(FIRST_HALF);
    others_free(SECOND_HALF);
}

TEST(a_small_block_freed_twice_is_reported_when_its_second_copy_is_flushed)
{
    for (int is_home_between = 0; is_home_between < 2; is_home_between++) {
        CHECK_REPORTS(free_twice(is_home_between), "double free",
                      ", block of 64 bytes, already free\n");
    }
}

/* The bin is asked for nothing afterwards: whoever does not see it now never will. */
static void free_twice_in_a_row(size_t bytes)
{
    void *block = hak_malloc(bytes), *other = hak_malloc(bytes);
    hak_free(other);
    hak_free(block);
    hak_free(block);
    _exit(0);
}

TEST(a_small_block_freed_twice_in_a_row_is_reported_at_once)
{
    CHECK_REPORTS(free_twice_in_a_row(8), "double free", "block of 8 bytes, already free\n");
    CHECK_REPORTS(free_twice_in_a_row(64), "double free", "block of 64 bytes, already free\n");
    CHECK_REPORTS(free_twice_in_a_row(1024), "double free", "block of 1024 bytes, already free\n");
}

static void free_again_by_realloc(void)
{
    void *block = hak_malloc(64);
    hak_free(block);
    void *moved = hak_realloc(block, 1000);
    _exit(moved == NULL);
}

TEST(realloc_of_the_block_freed_last_is_reported_at_once)
{
    CHECK_REPORTS(free_again_by_realloc(), "double free", "block of 64 bytes, already free\n");
}

static void free_large_twice(void)
{
    void *block = hak_malloc(LARGE_BYTES);
    hak_free(block);
    hak_free(block);
}

TEST(a_large_block_freed_twice_is_reported_at_once)
{
    CHECK_REPORTS(free_large_twice(), "invalid free",
                  "nothing is allocated there: freed before, or never allocated\n");
}

static void *free_block_twice(void *block)
{
    hak_free(block);
    hak_free(block);
    hak_thread_flush();
    return NULL;
}

TEST(a_block_freed_twice_by_another_thread_is_reported)
{
    CHECK_REPORTS(in_thread(free_block_twice, hak_malloc(64)), "double free",
                  "block of 64 bytes, already free\n");
}

static void free_by_two_strangers(size_t bytes)
{
    void *block = hak_malloc(bytes);
    free_home_by_stranger(block);
    free_home_by_stranger(block);
}

TEST(a_block_freed_by_two_other_threads_is_reported_by_the_second)
{
    CHECK_REPORTS(free_by_two_strangers(64), "double free", "block of 64 bytes, already free\n");
    CHECK_REPORTS(free_by_two_strangers(32768), "double free",
                  "block of 32768 bytes, already free\n");
}

static void free_with_stranger(void)
{
    others_take(64);
    void *block = others[1];
    hak_free(block);
    others_free(FIRST_HALF); /* the owner's copy is in the slab now */
    free_home_by_stranger(block);
    others_take(64); /* refills collect the stranger's */
}

TEST(a_block_freed_by_its_owner_and_a_stranger_is_reported_when_they_meet)
{
    CHECK_REPORTS(free_with_stranger(), "double free", ", block of 64 bytes, already free\n");
}

static void *take_and_free(void *argument)
{
    void **block = argument;
    *block = hak_malloc(32768);
    hak_free(*block);
    return NULL; /* and the block goes home with the thread */
}

static void free_after_retirement(void)
{
    void *block;
    in_thread(take_and_free, &block);
    hak_reclaim_empty_heaps();
    hak_free(block);
}

TEST(a_free_where_a_slab_used_to_be_is_reported)
{
    CHECK_REPORTS(free_after_retirement(), "invalid free",
                  "nothing is allocated there: freed before, or never allocated\n");
}
