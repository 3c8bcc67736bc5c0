/* SPDX-License-Identifier: MIT */
/* learn/learned_user.h - what the user says of sites in a file while the program runs.
 *
 * Owns        nothing.
 * Invariants  what was said last of a site is kept: what the file was told since the program read
 *             it, unless the program was told itself.
 * Threads     pure functions.
 * Tests       tests/unit/learn/learned_user_test.c
 */
#ifndef HAK_LEARN_LEARNED_USER_H
#define HAK_LEARN_LEARNED_USER_H

#include "learn/learned_file.h"

/* Takes over what the file, as it is `now`, was told since the program read it as `before`. */
void hak_learned_heed(struct learned_program *program, const struct learned_program *before,
                      const struct learned_program *now);

#endif
