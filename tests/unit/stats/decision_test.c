/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/decision_test.c - the last decisions, newest first. */
#include "stats/decision.h"

#include "check.h"

static struct decision last[HAK_DECISIONS_KEPT];

TEST(what_was_decided_last_comes_first)
{
    hak_decide(purge, 4096);
    hak_decide(lose_heap, 3);
    hak_decisions_copy(last);
    CHECK_EQ(hak_decision_kind(last[0]), DECISION_lose_heap);
    CHECK_EQ(hak_decision_number(last[0]), 3);
    CHECK_EQ(hak_decision_kind(last[1]), DECISION_purge);
    CHECK_EQ(hak_decision_number(last[1]), 4096);
    CHECK(last[0].when_ms >= last[1].when_ms && last[1].when_ms > 0);
    CHECK_EQ(hak_decision_kind(last[2]), DECISION_NONE);
}

TEST(older_ones_make_room)
{
    for (uint64_t i = 1; i <= 3 * HAK_DECISIONS_KEPT; i++)
        hak_decide(purge, i);
    hak_decisions_copy(last);
    for (uint64_t i = 0; i < HAK_DECISIONS_KEPT; i++)
        CHECK_EQ(hak_decision_number(last[i]), 3 * HAK_DECISIONS_KEPT - i);
}

TEST(kinds_have_names_and_strange_ones_none)
{
    CHECK_STR(hak_decision_name(DECISION_purge), "purge");
    CHECK_STR(hak_decision_unit(DECISION_lose_heap), "heap");
    CHECK_STR(hak_decision_name(DECISION_COUNT), "");
    CHECK_STR(hak_decision_unit((enum decision_kind)255), "");
}
