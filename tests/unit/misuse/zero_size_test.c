/* SPDX-License-Identifier: MIT */
#include "../../check.h"

#include "faults.h"
#include "misuse/zero_size.h"
#include "os/os_fault.h"
#include "threads.h"

TEST(blocks_of_no_bytes_are_apart_and_given_back_once)
{
    CHECK(!hak_zero_size_holds(NULL) && !hak_zero_size_is_live(NULL));
    char *first = hak_zero_size_take(), *second = hak_zero_size_take();
    CHECK(first != NULL && second != NULL && first != second);
    CHECK(hak_zero_size_holds(first) && hak_zero_size_is_live(first) && (size_t)first % 16 == 0);
    CHECK(!hak_zero_size_give(first + 1));
    CHECK(hak_zero_size_give(first));
    CHECK(!hak_zero_size_is_live(first) && hak_zero_size_is_live(second));
    CHECK(!hak_zero_size_give(first));
    CHECK_FAULTS(*(volatile char *)second = 1);
}

static char *taken[2];

static void *take_first(void *number)
{
    taken[(uintptr_t)number - 1] = hak_zero_size_take();
    return NULL;
}

TEST(two_threads_that_take_the_first_at_once_have_one_range)
{
    pthread_t threads[2];
    start_threads(threads, 2, take_first);
    join_threads(threads, 2);
    CHECK(taken[0] != NULL && taken[1] != NULL && taken[0] != taken[1]);
    for (int i = 0; i < 2; i++)
        CHECK(hak_zero_size_holds(taken[i]) && hak_zero_size_give(taken[i]));
}

TEST(without_address_space_there_is_none)
{
    need_faults();
    hak_os_fault_every(1);
    CHECK(hak_zero_size_take() == NULL);
    hak_os_fault_every(0);
    CHECK(hak_zero_size_take() != NULL);
}

TEST(when_all_are_taken_there_is_none_until_some_are_given_back)
{
    enum { COUNT = 1 << 18 };
    static void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        if ((blocks[i] = hak_zero_size_take()) == NULL)
            CHECK(!"too early");
    CHECK(hak_zero_size_take() == NULL);
    CHECK(hak_zero_size_take() == NULL);
    for (size_t i = 0; i < COUNT; i++)
        if (i % 4096 == 4000 && !hak_zero_size_give(blocks[i]))
            CHECK(!"not given");
    CHECK(hak_zero_size_take() != NULL); /* one in 4,096 is free: full words are passed over */
}
