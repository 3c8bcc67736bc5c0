/* SPDX-License-Identifier: MIT */
#include "../../check.h"

#include "misuse/zero_size.h"

TEST(blocks_of_no_bytes_are_apart_and_given_back_once)
{
    CHECK(hak_zero_size_take() == NULL); /* nothing is reserved yet */
    CHECK(!hak_zero_size_holds(NULL));
    hak_zero_size_start();
    char *first = hak_zero_size_take(), *second = hak_zero_size_take();
    CHECK(first != NULL && second != NULL && first != second);
    CHECK(hak_zero_size_holds(first) && hak_zero_size_is_live(first) && (size_t)first % 16 == 0);
    CHECK(!hak_zero_size_give(first + 1));
    CHECK(hak_zero_size_give(first));
    CHECK(!hak_zero_size_is_live(first) && hak_zero_size_is_live(second));
    CHECK(!hak_zero_size_give(first));
    CHECK_FAULTS(*(volatile char *)second = 1);
}

TEST(when_all_are_taken_there_is_none)
{
    hak_zero_size_start();
    for (size_t i = 0; i < (size_t)1 << 20; i++)
        if (hak_zero_size_take() == NULL)
            CHECK(!"too early");
    CHECK(hak_zero_size_take() == NULL);
}
