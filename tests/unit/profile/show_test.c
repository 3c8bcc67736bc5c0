/* SPDX-License-Identifier: MIT */
/* tests/unit/profile/show_test.c - the board of a copy of the process. */
#include "profile/show.h"

#include "check.h"
#include "process/fork.h"
#include "process/start.h"
#include "profile/sites.h"

#define SITES 100u

static struct profile_board *open_board(void)
{
    CHECK(hak_process_start());
    hak_show_open();
    CHECK(hak_show_board() != NULL);
    return hak_show_board();
}

/* With a site that the board has to grow for. */
static uint32_t show_sites(void)
{
    uint32_t site = 0;
    hak_process_on_fork(hak_show_forget); /* as profile/profile.c does */
    for (uintptr_t i = 0; i < SITES; i++) {
        uintptr_t frames[2] = {0x400000 + i, 0x500000};
        site = hak_sites_find(frames, 2, true);
        CHECK(site != 0);
        hak_show_modules(site);
        hak_sites_note_taken(site, (struct sample_sum){1, 10 + i}, 70);
    }
    return site;
}

TEST(a_copy_shows_all_sites_of_its_parent_at_once)
{
    const struct profile_board *board = open_board();
    uint32_t last = show_sites();
    CHECK_EQ(hak_load_relaxed(&board->sites[last].allocated_bytes), 10 + SITES - 1);
    CHECK_EXITS(
        {
            const struct profile_board *own = open_board();
            CHECK_EQ(own->head.pid, getpid());
            CHECK_EQ(hak_load_acquire(&own->sites[last].state), BOARD_READY);
            CHECK_EQ(hak_load_relaxed(&own->sites[last].allocated_bytes), 10 + SITES - 1);
            hak_show_end();
        },
        0);
    hak_show_end();
}

TEST(code_that_began_to_write_to_the_board_of_the_parent_writes_to_that_of_the_copy)
{
    struct profile_board *board = open_board();
    struct board_site *site = &board->sites[show_sites()];
    CHECK_EXITS(
        {
            hak_store_relaxed(&site->freed_count, 5); /* before there is one: to the parent's */
            CHECK(open_board() == board);
            CHECK_EQ(board->head.pid, getpid());
            hak_store_relaxed(&site->freed_count, 7);
            hak_show_end();
        },
        0);
    CHECK_EQ(board->head.pid, getpid());
    CHECK_EQ(hak_load_relaxed(&site->freed_count), 5);
    hak_show_end();
}
