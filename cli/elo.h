/* SPDX-License-Identifier: MIT */
/* cli/elo.h - the words for what is tried in matches.
 *
 * Owns        the names of the numbers, and of the states of their contests.
 * Invariants  what a process says is looked up only where it is a word.
 * Threads     one.
 * Tests       tests/preload/elo_preload.sh
 */
#ifndef HAK_CLI_ELO_H
#define HAK_CLI_ELO_H

#include "learn/match_board.h"

const char *knob_name(uint32_t knob);

/* A value of it; 0: there is no such value. */
uint64_t knob_value(uint32_t knob, uint32_t arm);

/* LEARN, CANARY or FROZEN. */
const char *contest_word(uint32_t state);

#endif
