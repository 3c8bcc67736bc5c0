/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/wager_test.c - what gamblers have is evidence, as it does not grow by chance. */
#include "learn/wager.h"

#include "check.h"

/* The sum of what all sequences of so many fair outcomes of this size lead to, and how many of them
 * ever reach `target`. */
static uint64_t sum_of_all(struct wager wager, int32_t size, int left, uint64_t target, bool was,
                           uint32_t *reached)
{
    was = was || hak_wager_value(&wager) >= target;
    if (left == 0) {
        *reached += was;
        return hak_wager_value(&wager);
    }
    struct wager up = wager, down = wager;
    hak_wager_note(&up, size);
    hak_wager_note(&down, -size);
    return sum_of_all(up, size, left - 1, target, was, reached) +
           sum_of_all(down, size, left - 1, target, was, reached);
}

TEST(a_fair_game_has_no_winnings_on_average)
{
    static const int32_t sizes[] = {1, 77, HAK_OUTCOME_ONE / 3, HAK_OUTCOME_ONE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct wager wager;
        uint32_t reached = 0;
        hak_wager_begin(&wager, HAK_WAGER_ONE);
        uint64_t sum = sum_of_all(wager, sizes[i], 14, 4 * HAK_WAGER_ONE, false, &reached);
        CHECK(sum <= HAK_WAGER_ONE << 14);
        CHECK(sum >= (HAK_WAGER_ONE << 14) - (HAK_WAGER_ONE << 14) / 1000);
        CHECK(reached <= 1u << 12); /* four times the start: in a quarter of all games at most */
    }
}

TEST(steady_gains_are_evidence_and_losses_none)
{
    struct wager wager;
    hak_wager_begin(&wager, HAK_WAGER_ONE);
    for (int i = 0; i < 40; i++)
        hak_wager_note(&wager, HAK_OUTCOME_ONE / 5);
    CHECK(hak_wager_value(&wager) > 100 * HAK_WAGER_ONE);
    hak_wager_begin(&wager, HAK_WAGER_ONE);
    for (int i = 0; i < 40; i++)
        hak_wager_note(&wager, -HAK_OUTCOME_ONE / 5);
    CHECK(hak_wager_value(&wager) < HAK_WAGER_ONE / 2);
}

TEST(capital_is_bounded_and_never_negative)
{
    struct wager wager;
    hak_wager_begin(&wager, UINT64_MAX);
    CHECK_EQ(hak_wager_value(&wager), HAK_WAGER_MOST);
    for (int i = 0; i < 1000; i++)
        hak_wager_note(&wager, HAK_OUTCOME_ONE);
    CHECK_EQ(hak_wager_value(&wager), HAK_WAGER_MOST);
    for (int i = 0; i < 1000; i++)
        hak_wager_note(&wager, -HAK_OUTCOME_ONE);
    CHECK(hak_wager_value(&wager) < HAK_WAGER_ONE);
}
