/* SPDX-License-Identifier: MIT */
/* cli/summary.h - a report in a few lines of plain words.
 *
 * Owns        which numbers are added up for which words, and when an option is worth a try.
 * Invariants  what is held is all that is or may be resident: the window without what is clean, and
 *             hakmem's own records.
 * Threads     one.
 * Tests       tests/cli/stats_cli.sh
 */
#ifndef HAK_CLI_SUMMARY_H
#define HAK_CLI_SUMMARY_H

#include "statistics.h"

/* Prints it; nothing for a report without the numbers. */
void print_summary(const struct report *report);

#endif
