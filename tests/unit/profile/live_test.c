/* SPDX-License-Identifier: MIT */
/* tests/unit/profile/live_test.c - a live sample is found by its block, once. */
#include "profile/live.h"

#include "../../check.h"
#include "process/start.h"

static const void *block_at(uintptr_t number)
{
    return (const void *)(0x100000000 + number * 48);
}

static uint64_t visited;
static void count(const struct live_sample *sample, void *context)
{
    CHECK_EQ(context, &visited);
    visited += sample->site;
}

TEST(a_sample_is_removed_once)
{
    struct live_sample sample = {{3, 300}, 77, 5, 0, 9, 100}, found;
    CHECK(hak_process_start());
    CHECK(!hak_live_remove(block_at(1), &found));
    CHECK(!hak_live_add(block_at(1), &sample, false)); /* no memory yet */
    CHECK(hak_live_add(block_at(1), &sample, true));
    CHECK(!hak_live_remove(block_at(2), &found));
    CHECK(hak_live_remove(block_at(1), &found));
    CHECK_EQ(found.sum.count, 3);
    CHECK_EQ(found.sum.bytes, 300);
    CHECK_EQ(found.birth_ns, 77);
    CHECK_EQ(found.site, 5);
    CHECK_EQ(found.ticket, 9);
    CHECK_EQ(found.logged_bytes, 100);
    CHECK(!hak_live_remove(block_at(1), &found));
}

TEST(a_sample_that_is_held_is_found_by_nobody_and_comes_back_to_its_place)
{
    struct live_sample sample = {{3, 300}, 77, 5, 0, 9, 100}, held, found;
    struct live_place place, again;
    CHECK(hak_process_start());
    CHECK(hak_live_add(block_at(1), &sample, true));
    CHECK(!hak_live_hold(block_at(2), &held, &place));
    CHECK(hak_live_hold(block_at(1), &held, &place));
    CHECK_EQ(held.sum.bytes, 300);
    CHECK(!hak_live_hold(block_at(1), &found, &again));
    CHECK(!hak_live_remove(block_at(1), &found));
    visited = 0;
    hak_live_visit(count, &visited);
    CHECK_EQ(visited, 0);
    held.sum.bytes = 600;
    held.logged_bytes = 200;
    hak_live_let_go(block_at(1), &held, &place);
    hak_live_visit(count, &visited);
    CHECK_EQ(visited, 5);
    CHECK(hak_live_remove(block_at(1), &found));
    CHECK_EQ(found.sum.bytes, 600);
    CHECK_EQ(found.birth_ns, 77);
    CHECK_EQ(found.logged_bytes, 200);
}

TEST(there_is_room_for_a_hundred_thousand_samples_and_those_without_are_counted)
{
    CHECK(hak_process_start());
    struct live_sample found, sample = {{1, 1}, 0, 1, 0, 0, 1};
    uint32_t added = 0;
    while (hak_live_add(block_at(added), &sample, true))
        CHECK(++added <= HAK_LIVE_MOST);
    CHECK(added > 100000);
    hak_live_visit(count, &visited);
    CHECK_EQ(visited, added);
    for (uint32_t i = 0; i < added; i++)
        CHECK(hak_live_remove(block_at(i), &found));
    visited = 0;
    hak_live_visit(count, &visited);
    CHECK_EQ(visited, 0);
    for (uint32_t i = 0; i < 1000; i++) /* places are used again */
        CHECK(hak_live_add(block_at(i), &sample, false));
}

static uint64_t ended_count, ended_bytes;

static void count_ended(const struct live_sample *sample)
{
    ended_count++;
    ended_bytes += sample->sum.bytes;
}

TEST(the_samples_of_a_heap_end_together_and_no_others)
{
    enum { MANY = 3000 };
    struct live_sample found;
    CHECK(hak_process_start());
    for (uint32_t i = 0; i < MANY; i++) {
        struct live_sample sample = {{1, i}, 0, 1, i % 3, 0, i};
        CHECK(hak_live_add(block_at(i + 1), &sample, true));
    }
    hak_live_remove_heap(2, count_ended);
    CHECK_EQ(ended_count, MANY / 3);
    CHECK_EQ(ended_bytes, (uint64_t)MANY / 3 * (MANY + 1) / 2);
    hak_live_remove_heap(2, count_ended);
    CHECK_EQ(ended_count, MANY / 3);
    for (uint32_t i = 0; i < MANY; i++)
        CHECK_EQ(hak_live_remove(block_at(i + 1), &found), i % 3 != 2);
}
