/* SPDX-License-Identifier: MIT */
/* learn/learned_halve.h - what was learned gets older.
 *
 * Owns        nothing.
 * Invariants  what the user said of a site stays.
 * Threads     a pure function.
 * Tests       tests/unit/learn/learned_file_test.c
 */
#ifndef HAK_LEARN_LEARNED_HALVE_H
#define HAK_LEARN_LEARNED_HALVE_H

#include "learn/learned_file.h"

/* Evidence counts half; what is left of no episode or sample is forgotten, but for what the user
 * said of a site. */
void hak_learned_halve(struct learned_program *program);

#endif
