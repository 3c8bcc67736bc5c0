/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_reused_test.c - a block is freed again after its address could have been
 * handed out again: the quarantine keeps it out of use. */
#include "hardened.h"

/* What others took after the first free lives on, and the second free is known for what it is. */
static void free_after_reuse(size_t bytes)
{
    void *block = take_some(bytes);
    hak_free(block);
    for (int i = 0; i < 50; i++)
        others[i] = hak_malloc(bytes);
    hak_free(block);
}

TEST(a_second_free_after_50_allocations_of_8_bytes_is_reported)
{
    CHECK_ABORTS(free_after_reuse(TINY_BYTES), "hakmem: double free: pointer 0x");
}

TEST(a_second_free_after_50_allocations_of_4096_bytes_is_reported)
{
    CHECK_ABORTS(free_after_reuse(PAGE_BYTES), "hakmem: double free: pointer 0x");
}

TEST(a_second_free_after_50_allocations_of_256_kib_is_reported)
{
    CHECK_ABORTS(free_after_reuse(SPAN_BYTES), "hakmem: double free: pointer 0x");
}
