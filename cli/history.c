/* SPDX-License-Identifier: MIT */
#include "history.h"

#include <stdio.h>
#include <string.h>

/* Values that differ by less than one part in so many are level. */
#define LEVEL_PART 50u
#define STEPS 8u

void history_add(struct history *history, uint64_t value)
{
    if (history->count == HISTORY_VALUES) {
        memmove(history->values, history->values + 1,
                sizeof history->values - sizeof *history->values);
        history->count--;
    }
    history->values[history->count++] = value;
}

void history_draw(const struct history *history, int columns, bool is_ascii,
                  char text[HISTORY_TEXT_BYTES])
{
    static const char *const bars[STEPS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const ascii[STEPS] = {"_", ".", ",", "-", "~", "+", "*", "#"};
    int first = history->count > columns ? history->count - columns : 0;
    uint64_t least = UINT64_MAX, most = 0;
    size_t used = 0;
    for (int i = first; i < history->count; i++) {
        least = history->values[i] < least ? history->values[i] : least;
        most = history->values[i] > most ? history->values[i] : most;
    }
    text[0] = '\0';
    uint64_t range = most - least;
    bool is_level = history->count == 0 || range <= most / LEVEL_PART;
    for (int i = first; i < history->count; i++) {
        double part = is_level ? 0 : (double)(history->values[i] - least) / (double)range;
        size_t step = is_level ? STEPS / 2 - 1 : (size_t)(part * (STEPS - 1) + 0.5);
        used += (size_t)snprintf(text + used, HISTORY_TEXT_BYTES - used, "%s",
                                 is_ascii ? ascii[step] : bars[step]);
    }
}
