/* SPDX-License-Identifier: MIT */
/* tests/unit/profile/show_test.c - when a board is made, and what is on that of a copy. */
#include "profile/show.h"

#include "api/api.h"
#include "check.h"
#include "conf/conf.h"
#include "heap/census.h"
#include "heap/draw.h"
#include "os/os.h"
#include "process/fork.h"
#include "process/start.h"
#include "profile/sites.h"
#include "stats/snapshot_take.h"

#include <string.h>

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

TEST(a_board_is_made_when_samples_stand_for_two_mean_distances)
{
    CHECK(hak_process_start());
    hak_draw_start(1 << 20, 0, hak_os_clock_ms());
    hak_show_sample(1 << 20);
    CHECK(hak_show_board() == NULL);
    hak_show_sample(1 << 20);
    CHECK(hak_show_board() != NULL);
    hak_show_end();
}

TEST(a_single_sample_is_shown_by_a_tick_ten_milliseconds_later)
{
    CHECK(hak_process_start());
    hak_draw_start(1 << 20, 0, hak_os_clock_ms());
    CHECK_EQ(hak_show_tick(), SHOW_NOTHING);
    uint64_t start_ms = hak_os_clock_ms();
    hak_show_sample(1);
    while (hak_show_board() == NULL)
        hak_show_tick();
    CHECK(hak_os_clock_ms() >= start_ms + 10);
    hak_show_end();
}

/* Whether the board has the file that the code is in. */
static bool has_module_of(const struct profile_board *board, uintptr_t address)
{
    for (uint32_t i = 0; i < hak_load_relaxed(&board->head.module_count); i++) {
        const struct board_module *module = &board->modules[i];
        CHECK_EQ(hak_load_acquire(&module->state), BOARD_READY);
        if (address - module->start < module->end - module->start)
            return true;
    }
    return false;
}

TEST(files_of_stacks_that_were_sampled_before_there_was_a_board_are_on_it)
{
    uintptr_t frames[2] = {(uintptr_t)&getpid + 1, 0};
    CHECK(hak_process_start());
    uint32_t site = hak_sites_find(frames, 1, true);
    hak_show_modules(site);
    const struct profile_board *board = open_board();
    CHECK(has_module_of(board, (uintptr_t)&has_module_of));
    CHECK(has_module_of(board, frames[0]));
    CHECK_EQ(hak_load_acquire(&board->sites[site].state), BOARD_READY);
    hak_show_end();
}

TEST(sites_that_were_many_before_there_was_a_board_are_on_it)
{
    CHECK(hak_process_start());
    uint32_t last = show_sites();
    const struct profile_board *board = open_board();
    CHECK_EQ(hak_load_relaxed(&board->sites[last].allocated_bytes), 10 + SITES - 1);
    hak_show_end();
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

/* The next page of the black box, by ticks of a kind. */
static struct shm_page next_page(const struct profile_board *board, void (*tick)(void))
{
    static struct shm_page page;
    uint64_t before_ms = hak_shm_read(&board->stats, &page) ? page.clock_ms : 0;
    do
        tick();
    while (!hak_shm_read(&board->stats, &page) || page.clock_ms == before_ms);
    return page;
}

static void tick_of_a_program(void)
{
    hak_show_tick();
}

TEST(only_the_background_thread_lets_the_kernel_walk_all_memory)
{
    static struct snapshot known;
    static struct census census;
    hak_conf_set("blackbox", 8, "on", 2, CONF_VARIABLE);
    const struct profile_board *board = open_board();
    void *block = hak_malloc(100);
    memset(block, 1, 100);
    hak_snapshot_take(&known, &census);
    hak_snapshot_ask_kernel(&known);
    if (known.own_resident_bytes == 0)
        SKIP("the kernel does not tell");
    for (int i = 0; i < 2; i++)
        CHECK_EQ(next_page(board, tick_of_a_program).snapshot.own_resident_bytes, 0);
    struct shm_page walked = next_page(board, hak_show_tick_at_leisure);
    CHECK(walked.snapshot.own_resident_bytes != 0);
    struct shm_page after = next_page(board, tick_of_a_program);
    CHECK_EQ(after.snapshot.own_resident_bytes, walked.snapshot.own_resident_bytes);
    CHECK(after.snapshot.resident_bytes != 0);
    hak_free(block);
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
