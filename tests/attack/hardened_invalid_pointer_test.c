/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_invalid_pointer_test.c - what no allocator gave is freed. */
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
