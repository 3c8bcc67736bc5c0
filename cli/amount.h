/* SPDX-License-Identifier: MIT */
/* cli/amount.h - numbers in at most six columns, for tables.
 *
 * Owns        nothing.
 * Invariants  512, 1.5K, 12.3M, 4.0G: no blank inside, so that tables divide at blanks.
 * Threads     pure functions.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAK_CLI_AMOUNT_H
#define HAK_CLI_AMOUNT_H

#include "base/compiler.h"

struct amount {
    char text[24];
};

/* With units of 1024 or 1000. */
struct amount amount_of(double value, double step);
struct amount bytes_of(uint64_t value);
struct amount count_of(double value);

#endif
