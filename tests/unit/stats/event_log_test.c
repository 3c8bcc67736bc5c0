/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/event_log_test.c - the last events, newest first. */
#include "stats/event_log.h"

#include "check.h"

static struct event last[HAK_EVENTS_KEPT];

TEST(the_latest_decision_comes_first)
{
    hak_event_log(purge, 4096);
    hak_event_log(lose_heap, 3);
    hak_events_copy(last);
    CHECK_EQ(hak_event_kind(last[0]), EVENT_lose_heap);
    CHECK_EQ(hak_event_number(last[0]), 3);
    CHECK_EQ(hak_event_kind(last[1]), EVENT_purge);
    CHECK_EQ(hak_event_number(last[1]), 4096);
    CHECK(last[0].when_ms >= last[1].when_ms && last[1].when_ms > 0);
    CHECK_EQ(hak_event_kind(last[2]), EVENT_NONE);
}

TEST(older_ones_make_room)
{
    for (uint64_t i = 1; i <= 3 * HAK_EVENTS_KEPT; i++)
        hak_event_log(purge, i);
    hak_events_copy(last);
    for (uint64_t i = 0; i < HAK_EVENTS_KEPT; i++)
        CHECK_EQ(hak_event_number(last[i]), 3 * HAK_EVENTS_KEPT - i);
}

TEST(kinds_have_names_and_strange_ones_none)
{
    CHECK_STR(hak_event_name(EVENT_purge), "purge");
    CHECK_STR(hak_event_unit(EVENT_lose_heap), "heap");
    CHECK_STR(hak_event_name(EVENT_COUNT), "");
    CHECK_STR(hak_event_unit((enum event_kind)255), "");
}
