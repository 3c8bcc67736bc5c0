/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/shm_test.c - what is published is what is read. */
#include "stats/shm.h"

#include "check.h"

static struct stats_shm shm;
static struct shm_page page, got;

TEST(an_empty_board_has_no_page)
{
    CHECK(!hak_shm_read(&shm, &got));
}

TEST(the_newest_page_is_read_whole)
{
    for (uint64_t i = 1; i <= 5; i++) {
        memset(&page, (int)i, sizeof page);
        hak_shm_publish(&shm, &page);
        CHECK(hak_shm_read(&shm, &got));
        CHECK(memcmp(&page, &got, sizeof page) == 0);
    }
}

TEST(the_page_before_stays_while_the_next_is_written)
{
    memset(&page, 7, sizeof page);
    hak_shm_publish(&shm, &page);
    /* A writer that died in the middle. */
    hak_store_relaxed(&shm.pages[0][3], 99);
    CHECK(hak_shm_read(&shm, &got));
    CHECK(memcmp(&page, &got, sizeof page) == 0);
}

TEST(the_layout_is_no_trivial_number)
{
    CHECK(hak_shm_layout() != 0);
    CHECK_EQ(hak_shm_layout(), hak_shm_layout());
}
