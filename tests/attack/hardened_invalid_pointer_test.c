/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_invalid_pointer_test.c - what no allocator gave, the inside of a block, or
 * a freed one, is freed or resized. */
#include "hardened.h"

static void free_a_variable(void)
{
    _Alignas(16) char variable[64];
    void *volatile block = variable;
    hak_free(block);
}

static void free_never_allocated(void)
{
    char *block = take_some(1000);
    for (size_t i = 1; i < 40; i++) /* most blocks around it were never handed out */
        hak_free(block + i * 1024);
}

TEST(pointers_that_no_allocator_gave_are_reported)
{
    CHECK_ABORTS(free_a_variable(), "on the stack of the calling thread\n");
    CHECK_ABORTS(hak_free((void *)1), "an address near NULL\n");
    CHECK_ABORTS(hak_free((void *)0xdeadbeefdeadbee0), "not a user-space address\n");
    CHECK_ABORTS(free_never_allocated(), "hakmem: invalid free: pointer 0x");
}

TEST(the_inside_of_a_block_is_reported_at_once)
{
    EACH_SIZE (bytes) {
        CHECK_ABORTS(hak_free(take_some(bytes) + 1), "hakmem: invalid free: pointer 0x");
        CHECK_ABORTS(hak_free(take_some(bytes) + 16), "not the start of");
        CHECK_ABORTS(hak_realloc(take_some(bytes) + 16, 100),
                     "hakmem: invalid realloc: pointer 0x");
    }
    CHECK_ABORTS(hak_free(take_some(SPAN_BYTES) + 100000),
                 "nothing is allocated there: freed before, or never allocated\n");
}

static char *freed(size_t bytes)
{
    char *block = take_some(bytes);
    hak_free(block);
    return block;
}

TEST(a_realloc_after_free_is_reported_at_once)
{
    EACH_SIZE (bytes) {
        CHECK_ABORTS(hak_realloc(freed(bytes), bytes), "hakmem: invalid realloc: pointer 0x");
        CHECK_ABORTS(hak_realloc(freed(bytes), 2 * bytes), ", already free\n");
        CHECK_ABORTS(hak_malloc_usable_size(freed(bytes)),
                     "hakmem: invalid malloc_usable_size: pointer 0x");
    }
}
