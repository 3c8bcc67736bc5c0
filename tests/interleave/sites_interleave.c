/* SPDX-License-Identifier: MIT */
/* tests/interleave/sites_interleave.c - call sites get their numbers without a lock: a stack has
 * one, and who finds a site finds its whole stack. */
#include "../check.h"
#include "interleave.h"
#include "process/start.h"
#include "profile/sites.h"
#include "region/meta.h"

#define CHUNK_SITES 40u /* of src/profile/sites.c: its first chunk */

static uint32_t found[INTERLEAVE_BODIES_MOST + 1];
static struct profile_board board;

/* The next site but one is the first of a new chunk. */
static void make(void)
{
    CHECK(hak_process_start());
    for (uintptr_t i = 1; i < CHUNK_SITES - 1; i++)
        CHECK_EQ(hak_sites_find(&i, 1, true), i);
    hak_meta_prewarm(256 * 1024);
}

static uint32_t find(uintptr_t first)
{
    uintptr_t frames[] = {first, first + 1, first + 2};
    return hak_sites_find(frames, 3, true);
}

static void check(uint32_t site)
{
    const struct board_site *record = hak_sites_at(site);
    if (record == NULL || site < CHUNK_SITES - 1)
        return;
    MUST(record->frame_count == 3);
    MUST(record->frames[1] == record->frames[0] + 1 && record->frames[2] == record->frames[0] + 2);
}

static void find_first(void)
{
    found[interleave_self()] = find(1000);
    MUST(found[interleave_self()] != 0);
}

static void find_other(void)
{
    found[interleave_self()] = find(2000);
    MUST(found[interleave_self()] != 0);
}

static void find_other_then_first(void)
{
    find_other();
    find_first();
}

static void look(void)
{
    for (uint32_t site = CHUNK_SITES - 1; site < hak_sites_count(); site++)
        check(site);
}

/* A new board, written as memory that is nobody else's. */
static void show(void)
{
    *(uint64_t *)(void *)&board.head.site_count = 0;
    hak_sites_show(&board, 3);
}

/* As another process does. */
static void read_board(void)
{
    for (uint32_t site = 1; site < 3; site++) {
        struct board_site *shown = &board.sites[site];
        if (hak_load_acquire(&shown->state) != BOARD_READY)
            continue;
        MUST(hak_word_peek(&shown->frame_count) == 3);
        MUST(hak_word_peek(&shown->frames[2]) == hak_word_peek(&shown->frames[0]) + 2);
    }
}

static void both_have_found_one(void)
{
    MUST(found[1] == found[2] && found[1] == find(1000));
}

static void each_has_its_own(void)
{
    MUST(found[1] != found[2]);
    MUST(found[1] == find(1000) && found[2] == find(2000));
}

static void it_is_shown(void)
{
    MUST(board.sites[found[1]].frame_count == 3);
    MUST(hak_load_relaxed(&board.head.site_count) == 2);
}

static const struct harness harnesses[] = {
    {"two find one", NULL, {find_first, find_first}, both_have_found_one, 2, 2, 0},
    {"two find two", NULL, {find_first, find_other}, each_has_its_own, 2, 2, 0},
    {"one looks", NULL, {find_first, look}, NULL, 2, 2, 0},
    {"one looks at a new chunk", NULL, {find_other_then_first, look}, NULL, 2, 1, 0},
};
#define HARNESS_COUNT (sizeof harnesses / sizeof *harnesses)

TEST(a_stack_has_one_number_and_a_number_its_whole_stack)
{
    make();
    CHECK(interleave_hold(harnesses, HARNESS_COUNT));
}

static const struct harness shown_harnesses[] = {
    {"a new site is read", show, {find_first, read_board}, it_is_shown, 2, 2, 0},
    {"a board is new", NULL, {find_first, show}, NULL, 1, 1, 0},
};

TEST(a_site_that_is_shown_is_whole)
{
    CHECK(hak_process_start());
    CHECK(interleave_hold(shown_harnesses, 2));
}

TEST(every_order_of_shown_sites_is_needed)
{
    static const struct kept_order kept[] = {
        {"show_stack load acquire: without acquire", "what is shown already is only left alone"},
        {"shown_at load acquire: without acquire", "show_stack acquires the board once more"},
        {"enter cas release: without release", "here no other thread looks for the stack"},
        {"hak_sites_show store release #2: without release",
         "a number; the memory that it counts was there before any thread could ask"},
        {NULL, NULL}};
    CHECK(hak_process_start());
    CHECK(interleave_needs_orders("src/profile/sites.", shown_harnesses, 2, kept));
}

TEST(every_order_of_sites_is_needed)
{
    static const struct kept_order kept[] = {
        {"shown_at load acquire: without acquire", "here nothing is shown"}, {NULL, NULL}};
    make();
    CHECK(interleave_needs_orders("src/profile/sites.", harnesses, HARNESS_COUNT, kept));
}
