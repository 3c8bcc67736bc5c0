/* SPDX-License-Identifier: MIT */
/* tests/attack/free_into_retired_slab_test.c - a block is freed again after its slab is gone. */
#include "attack.h"

static void *take_in_thread(void *argument)
{
    (void)argument;
    void *block = hak_malloc(32768);
    hak_free(block);
    return block; /* freed, and its slab goes home with the thread */
}

static void free_after_retirement(void)
{
    pthread_t thread;
    void *block;
    CHECK_EQ(pthread_create(&thread, NULL, take_in_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, &block), 0);
    hak_free(block);
}

TEST(a_free_where_a_slab_used_to_be_is_reported)
{
    CHECK_ABORTS(free_after_retirement(), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_after_retirement(), "nothing is allocated there\n");
}
