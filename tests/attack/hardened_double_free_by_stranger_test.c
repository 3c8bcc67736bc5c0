/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_double_free_by_stranger_test.c - a thread frees what its owner has
 * freed. */
#include "hardened.h"

static void free_both(size_t bytes)
{
    void *block = take_some(bytes);
    hak_free(block);
    free_by_stranger(block);
}

static void free_both_strangers(size_t bytes)
{
    void *block = take_some(bytes);
    free_by_stranger(block);
    hak_free(block);
}

TEST(a_block_of_8_bytes_freed_by_two_threads_is_reported_at_once)
{
    CHECK_ABORTS(free_both(TINY_BYTES), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_both_strangers(TINY_BYTES), "hakmem: double free: pointer 0x");
}

TEST(a_block_of_4096_bytes_freed_by_two_threads_is_reported_at_once)
{
    CHECK_ABORTS(free_both(PAGE_BYTES), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_both_strangers(PAGE_BYTES), "hakmem: double free: pointer 0x");
}

TEST(a_block_of_256_kib_freed_by_two_threads_is_reported_at_once)
{
    CHECK_ABORTS(free_both(SPAN_BYTES), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_both_strangers(SPAN_BYTES), "hakmem: double free: pointer 0x");
}
