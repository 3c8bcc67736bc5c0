/* SPDX-License-Identifier: MIT */
/* profile/modules.h - the files that the code on stacks is from.
 *
 * Owns        the modules of a board.
 * Invariants  a module is added when a stack leads into it for the first time, by the thread whose
 *             stack it is: it cannot be unloaded meanwhile. One that came in another's place is
 *             added, too; the later one counts. Its file header is read only where it is mapped.
 * Threads     one at a time adds.
 * Tests       tests/preload/leaks_preload.sh
 */
#ifndef HAK_PROFILE_MODULES_H
#define HAK_PROFILE_MODULES_H

#include "profile/board.h"

/* The module that code on this thread's stack belongs to; false: none is known. */
bool hak_module_describe(uintptr_t address, struct board_module *found);

void hak_modules_add(struct profile_board *board, const uint64_t *frames, uint32_t frame_count);

/* The program itself, which is the first one of a board that has any. */
void hak_modules_add_program(struct profile_board *board);

/* Copies the modules of a board that is no longer added to onto a new one. */
void hak_modules_copy(struct profile_board *to, const struct profile_board *from);

#endif
