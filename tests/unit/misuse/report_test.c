/* SPDX-License-Identifier: MIT */
/* tests/unit/misuse/report_test.c - the one line that misuse is worth. */
#include "check.h"
#include "misuse/report.h"

TEST(a_line_names_the_misuse_the_pointer_the_block_and_its_state)
{
    CHECK_ABORTS(hak_misuse("double free", (void *)0x7f00deadbeef, 48, "already free"),
                 "hakmem: double free: pointer 0x7f00deadbeef, block of 48 bytes, already free\n");
}

TEST(a_line_says_when_there_is_no_block)
{
    CHECK_ABORTS(hak_misuse("invalid free", (void *)0x10, 0, "an address near NULL"),
                 "hakmem: invalid free: pointer 0x10, no block, an address near NULL\n");
}

TEST(a_long_line_is_cut_and_not_overrun)
{
    char state[2000];
    memset(state, 's', sizeof state);
    state[sizeof state - 1] = '\0';
    CHECK_ABORTS(hak_misuse(state, NULL, 1, state), "hakmem: ssss");
}
