/* SPDX-License-Identifier: MIT */
/* tests/attack/double_free_by_one_stranger_test.c - a thread frees a block of another twice. */
#include "attack.h"

static void *free_twice(void *block)
{
    hak_free(block);
    hak_free(block);
    hak_thread_flush();
    return NULL;
}

static void free_twice_by_stranger(void)
{
    in_thread(free_twice, hak_malloc(64));
}

TEST(a_block_freed_twice_by_another_thread_is_reported)
{
    CHECK_ABORTS(free_twice_by_stranger(), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_twice_by_stranger(), "block of 64 bytes, already free\n");
}
