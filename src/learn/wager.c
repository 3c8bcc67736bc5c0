/* SPDX-License-Identifier: MIT */
#include "learn/wager.h"

#include "base/bits.h"

/* The stake of each gambler, in sixteenths: the worst outcome leaves the boldest an eighth. */
static const int32_t bets[HAK_WAGER_GAMBLERS] = {2, 4, 8, 14};

void hak_wager_begin(struct wager *wager, uint64_t capital)
{
    for (uint32_t i = 0; i < HAK_WAGER_GAMBLERS; i++)
        wager->capitals[i] = hak_least(capital, HAK_WAGER_MOST);
}

void hak_wager_note(struct wager *wager, int32_t outcome)
{
    for (uint32_t i = 0; i < HAK_WAGER_GAMBLERS; i++) {
        /* 1 + bet * outcome, exact in units of 2^-20: below 2^21, so the product fits. */
        int32_t factor = 16 * HAK_OUTCOME_ONE + bets[i] * outcome;
        wager->capitals[i] = hak_least(wager->capitals[i] * (uint32_t)factor >> 20, HAK_WAGER_MOST);
    }
}

uint64_t hak_wager_value(const struct wager *wager)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < HAK_WAGER_GAMBLERS; i++)
        sum += wager->capitals[i];
    return sum / HAK_WAGER_GAMBLERS;
}
