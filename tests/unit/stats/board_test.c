/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/board_test.c - what is published is what is read. */
#include "stats/board.h"

#include "check.h"

static struct board board;
static struct board_page page, got;

TEST(an_empty_board_has_no_page)
{
    CHECK(!hak_board_read(&board, &got));
}

TEST(the_newest_page_is_read_whole)
{
    for (uint64_t i = 1; i <= 5; i++) {
        memset(&page, (int)i, sizeof page);
        hak_board_publish(&board, &page);
        CHECK(hak_board_read(&board, &got));
        CHECK(memcmp(&page, &got, sizeof page) == 0);
    }
}

TEST(the_page_before_stays_while_the_next_is_written)
{
    memset(&page, 7, sizeof page);
    hak_board_publish(&board, &page);
    /* A writer that died in the middle. */
    hak_store_relaxed(&board.pages[0][3], 99);
    CHECK(hak_board_read(&board, &got));
    CHECK(memcmp(&page, &got, sizeof page) == 0);
}

TEST(the_layout_is_no_trivial_number)
{
    CHECK(hak_board_layout() != 0);
    CHECK_EQ(hak_board_layout(), hak_board_layout());
}
