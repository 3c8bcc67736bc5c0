/* SPDX-License-Identifier: MIT */
/* tests/attack/free_stack_test.c - a variable on the stack is freed. */
#include "attack.h"

static void free_a_variable(void)
{
    _Alignas(16) char variable[64];
    void *volatile block = variable;
    hak_free(block);
}

TEST(a_pointer_to_the_stack_is_reported)
{
    CHECK_ABORTS(free_a_variable(), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_a_variable(), "on the stack of the calling thread\n");
}
