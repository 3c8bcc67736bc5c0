/* SPDX-License-Identifier: MIT */
/* tests/unit/profile/rule_effect_test.c - pages of real slabs are observed while a rule acts and
 * while it is held back. If this fails, what rules change is measured wrongly, or not at all. */
#include "profile/rule_effect.h"

#include "api/api.h"
#include "check.h"
#include "heap/flush.h"
#include "heap/route.h"
#include "os/os.h"

#define CLASS 8u
#define BYTES 120u
#define SITE 0x401234u
#define GENERATION HAK_SITE_GENERATION_LEAST
#define WINDOW (GENERATION / 64)
#define BURST 800u
#define WINDOWS_MOST 20000u

static struct site_log site_log;
static uint64_t volume = GENERATION;

/* Whether requests of the site are held back now. */
static bool is_held(void)
{
    return hak_route_find(CLASS, (struct os_caller){.address = SITE}) == PARTITION_ORDINARY;
}

static void wait_for_a_look(void)
{
    uint64_t start_ms = hak_os_clock_ms();
    while (hak_os_clock_ms() - start_ms < 6)
        ;
}

static void take_burst(void **blocks)
{
    for (uint32_t i = 0; i < BURST; i++) {
        blocks[i] = hak_malloc(BYTES);
        CHECK(blocks[i] != NULL);
    }
}

/* What ordinary requests get stays where rules are held back, elsewhere than what they get where
 * rules act, which goes. Of each window four blocks are noted, the first one on a page that earlier
 * ones may have a part of. */
static void live_through_window(void)
{
    void *blocks[BURST], *kept[BURST];
    volume += WINDOW;
    hak_rule_effect_look(&site_log, volume, GENERATION);
    if (is_held())
        hak_route_watch(HAK_LONG_CLASS_COUNT);
    take_burst(blocks);
    if (is_held()) {
        hak_route_watch(CLASS);
        take_burst(kept);
    }
    for (uint32_t i = 0; i < BURST; i++)
        hak_free(blocks[i]);
    hak_thread_flush();
}

TEST(pages_of_held_back_windows_are_in_use_for_longer)
{
    struct route route = {.frames = {SITE}, .class_index = CLASS, .kind = ROUTE_LONG};
    const struct rule_effect *effect = &site_log.classes[CLASS].effect;
    uint32_t windows = 0;
    hak_free(hak_malloc(BYTES));
    hak_route_publish(&route, 1);
    hak_rule_effect_of((uint64_t)1 << CLASS);
    while (effect->pages[true] < 4 || effect->pages[false] < 4) {
        CHECK(windows < WINDOWS_MOST);
        live_through_window();
        if (windows++ % 16 == 0)
            wait_for_a_look();
    }
    CHECK(effect->used[true] == effect->pages[true]);
    CHECK(effect->used[false] < effect->pages[false] / 2);
}

TEST(without_a_rule_nothing_is_observed_and_nothing_held_back)
{
    struct route route = {.frames = {SITE}, .class_index = CLASS, .kind = ROUTE_LONG};
    hak_route_publish(&route, 1);
    for (uint32_t i = 0; i < 1000; i++) {
        volume += WINDOW;
        hak_rule_effect_look(&site_log, volume, GENERATION);
        CHECK(!is_held());
        CHECK_EQ(hak_route_watched, HAK_LONG_CLASS_COUNT);
    }
}
