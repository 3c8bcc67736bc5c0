/* SPDX-License-Identifier: MIT */
/* cli/history.h - how a number went, as a line of small bars.
 *
 * Owns        struct history: the last values, the newest last.
 * Invariants  a bar is one column; the lowest is the least value shown, the highest the greatest,
 *             and values that hardly differ are level.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAK_CLI_HISTORY_H
#define HAK_CLI_HISTORY_H

#include "base/compiler.h"

enum { HISTORY_VALUES = 64, HISTORY_TEXT_BYTES = HISTORY_VALUES * 3 + 1 };

struct history {
    uint64_t values[HISTORY_VALUES];
    int count;
};

void history_add(struct history *history, uint64_t value);

/* The last `columns` values; in ASCII if that is all that the terminal has. */
void history_draw(const struct history *history, int columns, bool is_ascii,
                  char text[HISTORY_TEXT_BYTES]);

#endif
