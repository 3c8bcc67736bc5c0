/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/holdback_test.c - how much longer pages are in use while rules are held back:
 * worlds of pages whose use the test says; the clock and the numbers are the test's own. */
#include "learn/holdback.h"

#include "check.h"

#include <string.h>

#define GENERATION ((uint64_t)64 << 20)
#define CLASS 8u
#define STEP (GENERATION / 1024)

static struct holdback past;
static struct rule_effect effect;
static uint64_t volume, now_ms, state;
/* Of pages that are in use at a look, by whether their window was held back. */
static uint32_t used_percents[2];
static uint32_t windows, held_windows, pages_told;

static uint32_t draw(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33);
}

static void begin_world(uint64_t seed, uint32_t used_percent, uint32_t used_percent_held)
{
    memset(&past, 0, sizeof past);
    memset(&effect, 0, sizeof effect);
    state = seed * 0x9e3779b97f4a7c15ull + 1;
    volume = GENERATION;
    now_ms = 1000;
    used_percents[false] = used_percent;
    used_percents[true] = used_percent_held;
    windows = held_windows = pages_told = 0;
}

/* The test's pages have their kind as their slab's generation, and a share of their own. */
static bool is_used(const struct page_of_blocks *page)
{
    return page->first % 100 < used_percents[page->slab_generation];
}

static void step(void)
{
    struct held_page page;
    volume += STEP;
    now_ms += 1;
    hak_holdback_look(&past, now_ms, is_used);
    while (hak_holdback_take(&past, volume, GENERATION, &page)) {
        CHECK(volume - page.volume >= 2 * GENERATION);
        CHECK(page.seen_ms != 0);
        pages_told++;
        hak_effect_note(&effect, &page);
    }
    if (hak_holdback_turn(&past, volume, GENERATION, draw() % HAK_HOLDBACK_ONE)) {
        windows++;
        held_windows += past.draw < HAK_HOLDBACK_SHARE;
    }
    if (!hak_holdback_is_compared(&past))
        return;
    struct page_of_blocks new_page = {.slab_generation = past.draw < HAK_HOLDBACK_SHARE,
                                      .first = (uint16_t)draw()};
    hak_holdback_add(&past, &new_page, CLASS, volume);
}

TEST(one_window_of_128_is_held_back)
{
    begin_world(1, 0, 0);
    while (windows < 100000)
        step();
    CHECK(held_windows > 100000 / 128 * 9 / 10);
    CHECK(held_windows < 100000 / 128 * 11 / 10);
}

TEST(the_difference_is_measured)
{
    double share;
    begin_world(2, 20, 70);
    CHECK(!hak_effect_share(&effect, &share));
    while (pages_told < 4000)
        step();
    CHECK(hak_effect_share(&effect, &share));
    CHECK(share > 0.45 && share < 0.55);
    hak_effect_forget(&effect, 0.5);
    CHECK(hak_effect_share(&effect, &share));
    CHECK(share > 0.45 && share < 0.55);
    hak_effect_forget(&effect, 0.001);
    CHECK(!hak_effect_share(&effect, &share));
}

TEST(where_rules_change_nothing_nothing_is_measured)
{
    double sum = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        double share;
        begin_world(seed, 40, 40);
        while (pages_told < 400)
            step();
        CHECK(hak_effect_share(&effect, &share));
        CHECK(share > -0.25 && share < 0.25);
        sum += share;
    }
    CHECK(sum / 50 > -0.02 && sum / 50 < 0.02);
}

TEST(the_time_between_looks_counts_as_what_the_second_one_sees)
{
    struct page_of_blocks used = {.first = 0}, unused = {.first = 99};
    struct held_page page;
    begin_world(1, 50, 50);
    CHECK(hak_holdback_turn(&past, volume, GENERATION, 0));
    hak_holdback_look(&past, 1000, is_used);
    hak_holdback_add(&past, &used, CLASS, volume);
    hak_holdback_add(&past, &unused, CLASS, volume);
    hak_holdback_add(&past, &used, CLASS, volume); /* known */
    CHECK_EQ(past.count, 2);
    hak_holdback_look(&past, 1000 + HAK_HOLDBACK_LOOK_MS - 1, is_used); /* too soon */
    hak_holdback_look(&past, 1300, is_used);
    used_percents[false] = 0;
    hak_holdback_look(&past, 1400, is_used);
    CHECK(!hak_holdback_take(&past, volume + 2 * GENERATION - 1, GENERATION, &page));
    CHECK(hak_holdback_take(&past, volume + 2 * GENERATION, GENERATION, &page));
    CHECK_EQ(page.seen_ms, 400);
    CHECK_EQ(page.used_ms, 300);
    CHECK(page.is_held);
    CHECK(hak_holdback_take(&past, volume + 2 * GENERATION, GENERATION, &page));
    CHECK_EQ(page.used_ms, 0);
    CHECK(!hak_holdback_take(&past, volume + 2 * GENERATION, GENERATION, &page));
}

TEST(there_is_room_for_so_many_pages)
{
    begin_world(1, 0, 0);
    CHECK(hak_holdback_turn(&past, volume, GENERATION, 0));
    for (uint32_t i = 0; i <= HAK_HOLDBACK_PAGES; i++)
        hak_holdback_add(&past, &(struct page_of_blocks){.first = (uint16_t)i}, CLASS, volume);
    CHECK_EQ(past.count, HAK_HOLDBACK_PAGES);
}

TEST(as_many_windows_are_compared_that_are_not_held_back)
{
    uint32_t held = 0, others = 0;
    begin_world(1, 0, 0);
    for (uint32_t draw_of_window = 0; draw_of_window < HAK_HOLDBACK_ONE; draw_of_window++) {
        CHECK(hak_holdback_turn(&past, past.window_end, GENERATION, draw_of_window));
        CHECK(!hak_holdback_turn(&past, past.window_end - 1, GENERATION, 0));
        if (!hak_holdback_is_compared(&past))
            continue;
        hak_holdback_add(&past, &(struct page_of_blocks){0}, CLASS, volume);
        held += past.pages[past.first].is_held;
        others += !past.pages[past.first].is_held;
        past.count = 0;
    }
    CHECK_EQ(held, HAK_HOLDBACK_SHARE);
    CHECK_EQ(others, HAK_HOLDBACK_SHARE);
}
